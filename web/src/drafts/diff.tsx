// The diff of a draft. Untrusted: the server escapes control characters, and everything is rendered as text nodes.
import type { DraftFile, DraftLine, FindingRow } from "../gen/api";
import { plain } from "../model/format";
import { Icon } from "../ui/icon";
import { Note, Tag } from "../ui/parts";
import { actionTone } from "./words";

const CHANGES = { created: "new file", edited: "", deleted: "deleted", renamed: "renamed" } as const;

export function FileDiff({ file }: { file: DraftFile }) {
  const { draft } = file;
  const name = plain(draft.path);
  return (
    <section className="panel filediff" aria-label={name}>
      <header>
        <h2 className="mono">
          {name}
          {draft.rename_to !== null && <> → {plain(draft.rename_to)}</>}
        </h2>
        {CHANGES[draft.change] && <Tag>{CHANGES[draft.change]}</Tag>}
        {file.becomes_executable !== null && (
          <Tag tone="warn">{file.becomes_executable ? "becomes executable" : "no longer executable"}</Tag>
        )}
        <span className="push mono stat">
          <span className="plus">+{file.added}</span> <span className="minus">−{file.removed}</span>
        </span>
      </header>
      {file.findings.map((finding, at) => (
        <Finding key={at} finding={finding} />
      ))}
      {file.is_gone && <Note tone="neutral">The contents have been deleted; the audit log keeps their hashes.</Note>}
      {!file.is_gone && file.hunks.length === 0 && <p className="muted nodiff">No text changes.</p>}
      {file.hunks.length > 0 && (
        <table className="diff">
          <caption className="sr">Changes of {name}</caption>
          <thead className="sr">
            <tr>
              <th scope="col">Line before</th>
              <th scope="col">Line after</th>
              <th scope="col">Change</th>
              <th scope="col">Text</th>
            </tr>
          </thead>
          {file.hunks.map((hunk, at) => (
            <tbody key={at}>
              {hunk.lines.map((line, k) => (
                <Line key={k} line={line} />
              ))}
            </tbody>
          ))}
        </table>
      )}
      {file.lines_left > 0 && (
        <Note>
          {file.lines_left} more lines are not shown. <code>moothall review show {draft.draft_id}</code> shows all of
          them; only there can this be approved.
        </Note>
      )}
    </section>
  );
}

const SIGNS = { added: ["+", "added"], removed: ["−", "removed"], kept: ["", ""] } as const;

function Line({ line }: { line: DraftLine }) {
  const [sign, word] = SIGNS[line.side];
  return (
    <>
      <tr className={line.side}>
        <td className="no">{line.old}</td>
        <td className="no">{line.new}</td>
        <td className="sign">
          <span aria-hidden="true">{sign}</span>
          {word && <span className="sr">{word}</span>}
        </td>
        <td className="text">
          {line.parts.map((part, at) =>
            part.is_changed ? <mark key={at}>{plain(part.text)}</mark> : <span key={at}>{plain(part.text)}</span>,
          )}
          {line.is_cut && <span className="muted"> … (line cut)</span>}
        </td>
      </tr>
      {line.has_no_newline && (
        <tr className="kept">
          <td colSpan={3} />
          <td className="text muted">\ No newline at end of file</td>
        </tr>
      )}
      {line.findings.map((finding, at) => (
        <tr key={at} className="beside">
          <td colSpan={4}>
            <Finding finding={finding} />
          </td>
        </tr>
      ))}
    </>
  );
}

function Finding({ finding }: { finding: FindingRow }) {
  return (
    <div className={`gatefinding ${actionTone(finding.action) ?? ""}`}>
      <Icon name="warn" />
      <span>
        <b className="mono">{finding.rule}</b> {plain(finding.message)}{" "}
        <span className="muted">({finding.action})</span>
      </span>
    </div>
  );
}
