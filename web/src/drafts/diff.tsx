// The diff of a draft. Untrusted: the server escapes control characters, and everything is rendered as text nodes.
import { useState } from "react";
import type { DraftFile, DraftFileChange, DraftHunk, DraftLine, FindingRow } from "../gen/api";
import { plain } from "../model/format";
import { Icon } from "../ui/icon";
import { Button, Note, Segmented, Tag } from "../ui/parts";
import { type Choices, isRejected } from "./choices";
import { Comment, CommentForm } from "./comments";
import { ContentEditor } from "./content-editor";
import { actionTone } from "./words";

const CHANGES = { created: "new file", edited: "", deleted: "deleted", renamed: "renamed" } as const;

/** What a reviewer can do with a file while it waits for a decision. */
export type FileReview = {
  choices: Choices;
  /** Whether there is more than one hunk to choose from. */
  hasHunks: boolean;
  mayEdit: boolean;
  onHunk: (hunkId: string, choice: "approve" | "reject") => void;
  onEdit: (draftId: string, text: string | undefined) => void;
  onCommented: () => void;
};

export function FileDiff({ file, review }: { file: DraftFile; review?: FileReview | undefined }) {
  const { draft } = file;
  const name = plain(draft.path);
  const [isEditing, setEditing] = useState(false);
  const edited = review?.choices.edits[draft.draft_id];
  const hasEditor = review !== undefined && (isEditing || edited !== undefined);
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
        {edited !== undefined && <Tag tone="warn">edited by you</Tag>}
        <span className="push mono stat">
          <span className="plus">+{file.added}</span> <span className="minus">−{file.removed}</span>
        </span>
        {review?.mayEdit && !hasEditor && !file.is_gone && (
          <Button size="small" onClick={() => setEditing(true)} aria-label={`Edit ${name}`}>
            Edit
          </Button>
        )}
      </header>
      {review && hasEditor && (
        <ContentEditor
          draft={draft}
          text={edited}
          onChange={(text) => review.onEdit(draft.draft_id, text)}
          onClose={() => setEditing(false)}
        />
      )}
      {review?.hasHunks &&
        file.changes.map((change) => (
          <div key={change.hunk_id} className="hunkbar">
            <span>{CHANGE_WORDS[change.kind]}</span>
            <HunkChoice hunk={change} review={review} />
          </div>
        ))}
      {file.findings.map((finding, at) => (
        <Finding key={at} finding={finding} />
      ))}
      {file.comments.map((comment, at) => (
        <Comment key={at} comment={comment} />
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
            <Hunk key={at} file={file} hunk={hunk} review={hasEditor ? undefined : review} />
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

const CHANGE_WORDS: Record<DraftFileChange["kind"], string> = {
  create: "The file is created",
  delete: "The file is deleted",
  rename: "The file is renamed",
  mode: "The executable bit changes",
  lines: "All lines of the file",
};

function HunkChoice({ hunk, review }: { hunk: { hunk_id: string; number: number }; review: FileReview }) {
  return (
    <Segmented
      label={`Hunk ${hunk.number}`}
      options={[
        { value: "approve", name: "Approve" },
        { value: "reject", name: "Reject" },
      ]}
      value={isRejected(review.choices, hunk.hunk_id) ? "reject" : "approve"}
      onChange={(choice) => review.onHunk(hunk.hunk_id, choice)}
    />
  );
}

/** A hunk with its lines. While the draft waits, it can be chosen and commented on. */
function Hunk({ file, hunk, review }: { file: DraftFile; hunk: DraftHunk; review: FileReview | undefined }) {
  const [isCommenting, setCommenting] = useState(false);
  const { hunk_id, number } = hunk;
  const rejected = review !== undefined && hunk_id !== null && isRejected(review.choices, hunk_id);
  return (
    <tbody className={rejected ? "rejected" : undefined}>
      {review && (
        <tr>
          <td colSpan={4}>
            <div className="hunkbar">
              <span>{number === null ? "Lines" : `Hunk ${number}`}</span>
              {review.hasHunks && hunk_id !== null && number !== null && (
                <HunkChoice hunk={{ hunk_id, number }} review={review} />
              )}
              {!isCommenting && (
                <Button
                  size="small"
                  look="ghost"
                  onClick={() => setCommenting(true)}
                  aria-label={`Comment on ${number === null ? plain(file.draft.path) : `hunk ${number}`}`}
                >
                  Comment
                </Button>
              )}
            </div>
            {isCommenting && (
              <CommentForm
                draft={file.draft}
                lines={hunk.lines}
                onDone={(hasComment) => {
                  setCommenting(false);
                  if (hasComment) review.onCommented();
                }}
              />
            )}
          </td>
        </tr>
      )}
      {hunk.lines.map((line, k) => (
        <Line key={k} line={line} />
      ))}
    </tbody>
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
      {line.comments.map((comment, at) => (
        <tr key={at} className="beside">
          <td colSpan={4}>
            <Comment comment={comment} />
          </td>
        </tr>
      ))}
    </>
  );
}

export function Finding({ finding }: { finding: FindingRow }) {
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
