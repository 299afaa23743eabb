// The memo as the server composes it. Every text is plain: it is rendered as text nodes, never as markup.
import { createElement, Fragment } from "react";
import type { DocumentBlock, DocumentTable, TextSpan } from "../gen/api";
import { plain } from "../model/format";
import { MemoCite } from "./memo-cite";

/** A block with the anchor of its heading. */
export interface AnchoredBlock {
  block: DocumentBlock;
  anchor: string | undefined;
}

export function MemoBlocks({ run, blocks }: { run: string; blocks: readonly AnchoredBlock[] }) {
  return (
    <>
      {blocks.map(({ block, anchor }, i) => (
        <Block key={i} run={run} block={block} anchor={anchor} />
      ))}
    </>
  );
}

function Block({ run, block, anchor }: { run: string; block: DocumentBlock; anchor: string | undefined }) {
  switch (block.block) {
    case "heading":
      return createElement(
        `h${Math.min(4, block.level + 1)}`,
        { id: anchor, className: "memohead" },
        plain(block.words),
        <a className="anchor" href={`#${anchor}`} aria-label={`Link to ${plain(block.words)}`}>
          #
        </a>,
      );
    case "paragraph":
      return (
        <p>
          <Spans run={run} words={block.words} />
        </p>
      );
    case "notice":
      return (
        <p className="notice">
          <Spans run={run} words={block.words} />
        </p>
      );
    case "fine":
      return (
        <p className="finep">
          <Spans run={run} words={block.words} />
        </p>
      );
    case "list": {
      const items = block.items.map((item, i) => (
        <li key={i}>
          <Spans run={run} words={item} />
        </li>
      ));
      return block.numbered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "fields":
      return (
        <dl className="memofields">
          {block.rows.map((row, i) => (
            <div key={i}>
              <dt>{plain(row.name)}</dt>
              <dd>
                <Spans run={run} words={row.value} />
              </dd>
            </div>
          ))}
        </dl>
      );
    case "table":
      return <Table run={run} table={block} />;
  }
}

function Table({ run, table }: { run: string; table: DocumentTable }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a box that scrolls, not a fieldset
    <div
      className="memotable"
      role="group"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
      aria-label={`Table: ${table.columns.map((one) => one.title).join(", ")}`}
    >
      <table>
        <thead>
          <tr>
            {table.columns.map((column, i) => (
              <th key={i} scope="col" className={column.numbers ? "right" : column.wide ? "wide" : undefined}>
                {plain(column.title)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, r) => (
            <tr key={r} className={table.has_total && r === table.rows.length - 1 ? "total" : undefined}>
              {row.map((cell, c) => (
                <td key={c} className={table.columns[c]?.numbers ? "right num" : undefined}>
                  <Spans run={run} words={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Spans({ run, words }: { run: string; words: readonly TextSpan[] }) {
  return (
    <>
      {words.map((span, i) => (
        <Span key={i} run={run} span={span} />
      ))}
    </>
  );
}

function Span({ run, span }: { run: string; span: TextSpan }) {
  switch (span.span) {
    case "text":
      return <Fragment>{plain(span.text)}</Fragment>;
    case "strong":
      return <strong>{plain(span.text)}</strong>;
    case "cite":
      return <MemoCite run={run} id={span.id} />;
    case "source":
      return <code id={sourceAnchor(span.id)}>{plain(span.id)}</code>;
    case "link":
      return (
        <a href={filing(span.url)} target="_blank" rel="noreferrer">
          {plain(span.text)}
        </a>
      );
    case "mark":
      return <sup>{span.number}</sup>;
    case "bar":
      return (
        <span className="memobar" aria-hidden="true">
          <i style={{ width: `${(span.value / Math.max(1, span.top)) * 100}%` }} />
        </span>
      );
    case "dots":
      return (
        <span className="memodots" aria-hidden="true">
          {span.values.map((value, i) => (
            <i key={i} style={{ left: `${(value / Math.max(1, span.top)) * 100}%` }} />
          ))}
        </span>
      );
  }
}

export function sourceAnchor(id: string): string {
  return `source-${id.replace(/[^A-Za-z0-9.-]+/g, "-")}`;
}

/** Links lead to the SEC and nowhere else, whatever a response says. */
function filing(url: string): string | undefined {
  return url.startsWith("https://www.sec.gov/") ? url : undefined;
}
