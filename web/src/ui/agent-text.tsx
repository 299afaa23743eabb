// Text of a model. Untrusted: it is rendered as text nodes. Headings, lists, bold and citations are parsed from the plain
// text; HTML is never parsed.
import { Fragment, type ReactNode } from "react";
import { plain } from "../model/format";
import { Cite } from "./cite";

type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "list"; items: string[] }
  | { kind: "paragraph"; text: string };

/** `[F0:Revenue:FY2025; F0:Equity:FY2025]` or `[A1: a guess]`. */
const CITES = /\[((?:[A-Z][0-9]+[^[\]]*?)(?:;\s*[A-Z][0-9]+[^[\]]*?)*)\]/g;

export function AgentText({ text, big }: { text: string; big?: boolean }) {
  return (
    <div className={big ? "agent doctext" : "agent"} dir="auto">
      {blocks(plain(text)).map((block, i) => {
        if (block.kind === "heading") return <Heading key={i} level={block.level} text={block.text} />;
        if (block.kind === "list")
          return (
            <ul key={i}>
              {block.items.map((item, k) => (
                <li key={k}>{inline(item)}</li>
              ))}
            </ul>
          );
        return <p key={i}>{inline(block.text)}</p>;
      })}
    </div>
  );
}

function Heading({ level, text }: { level: number; text: string }) {
  return level <= 1 ? <h3 className="dt">{inline(text)}</h3> : <h4>{inline(text)}</h4>;
}

/** Inline text of a model, without block structure. */
export function AgentWords({ text }: { text: string }) {
  return <>{inline(plain(text))}</>;
}

function blocks(text: string): Block[] {
  const found: Block[] = [];
  let lines: string[] = [];
  const flush = () => {
    if (lines.length > 0) found.push({ kind: "paragraph", text: lines.join(" ") });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^\s*[-*]\s+(.*)$/.exec(line);
    if (heading) {
      flush();
      found.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    } else if (item) {
      flush();
      const last = found.at(-1);
      if (last?.kind === "list") last.items.push(item[1] ?? "");
      else found.push({ kind: "list", items: [item[1] ?? ""] });
    } else if (line.trim() === "") flush();
    else lines.push(line);
  }
  flush();
  return found;
}

function inline(text: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(CITES)) {
    parts.push(<Fragment key={from}>{bold(text.slice(from, match.index))}</Fragment>);
    from = match.index + match[0].length;
    const ids = (match[1] ?? "").split(";");
    // Punctuation directly follows the chip.
    const ends = /^[.,;:!?)]/.test(text.slice(from));
    ids.forEach((id, at) => {
      parts.push(<Cite key={`${from}-${id}`} id={id.trim()} tight={ends && at === ids.length - 1} />);
    });
  }
  parts.push(<Fragment key={from}>{bold(text.slice(from))}</Fragment>);
  return parts;
}

function bold(text: string): ReactNode {
  const parts = text.split("**");
  if (parts.length < 3) return text;
  return parts.map((part, i) =>
    i % 2 === 1 && i < parts.length - 1 ? <b key={i}>{part}</b> : <Fragment key={i}>{part}</Fragment>,
  );
}
