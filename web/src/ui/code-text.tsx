import { Fragment, useState } from "react";
import { type Problem, problemWords } from "../api/client";
import { plain } from "../model/format";
import { Icon } from "./icon";

/** A message with `code` in backticks, as the server and the command line write it. */
export function CodeText({ text }: { text: string }) {
  const parts = plain(text).split("`");
  // An odd number of backticks is not markup.
  if (parts.length % 2 === 0) return <>{plain(text)}</>;
  return (
    <>{parts.map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : <Fragment key={i}>{part}</Fragment>))}</>
  );
}

/** Why a request was refused, with the hint of the server. */
export function ProblemText({ problem }: { problem: Pick<Problem, "message" | "hint"> }) {
  return <CodeText text={problemWords(problem)} />;
}

/** Copies a text; the button says whether it worked. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, setState] = useState<"idle" | "copied" | "blocked">("idle");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      setState("blocked");
    }
    setTimeout(() => setState("idle"), 2500);
  };
  return (
    <button type="button" className="btn sm copy" onClick={copy} aria-label={`${label}: ${text}`}>
      <Icon name={state === "copied" ? "check" : "copy"} />
      <span aria-live="polite">{state === "copied" ? "Copied" : state === "blocked" ? "Select and copy" : label}</span>
    </button>
  );
}

/** A command for the terminal, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="command-line">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}
