// Comments on lines: the form below a hunk, one comment, and the list of all of them.
import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { asProblem, type Problem, post } from "../api/client";
import type { DraftCommentRow, DraftDetail, DraftLine, DraftReviewResponse, DraftRow } from "../gen/api";
import { ago, plain } from "../model/format";
import { ProblemText } from "../ui/code-text";
import { Icon } from "../ui/icon";
import { Button, Empty } from "../ui/parts";
import { useNow } from "../ui/use-now";

export const MAX_COMMENT_CHARS = 2000;

/** A line as a choice: lines that only the old file has are counted there. */
function place(line: DraftLine): { side: "old" | "new"; line: number } | undefined {
  if (line.new !== null) return { side: "new", line: line.new };
  return line.old === null ? undefined : { side: "old", line: line.old };
}

/** The form for a comment on one of these lines. The comment is bound to the version shown. */
export function CommentForm({
  draft,
  lines,
  onDone,
}: {
  draft: DraftRow;
  lines: readonly DraftLine[];
  onDone: (hasComment: boolean) => void;
}) {
  const field = useId();
  const select = useRef<HTMLSelectElement>(null);
  const places = lines.flatMap((line) => {
    const at = place(line);
    return at
      ? [{ ...at, text: plain(line.parts.map((part) => part.text).join("")), added: line.side === "added" }]
      : [];
  });
  const first = Math.max(
    places.findIndex((one) => one.added),
    0,
  );
  const [chosen, setChosen] = useState(first);
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => select.current?.focus(), []);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    const at = places[chosen];
    if (!at || busy || text.trim() === "") return;
    setBusy(true);
    try {
      const { side, line } = at;
      const body = { seal: draft.seal, path: draft.path, side, line, text: text.trim() };
      await post<DraftReviewResponse>(`/api/drafts/${draft.draft_id}/comments`, body);
      onDone(true);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const typed = (event: KeyboardEvent) => {
    if (event.key === "Escape") onDone(false);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(event);
  };
  return (
    <form className="commentform" onSubmit={send} onKeyDown={typed}>
      <label className="lab" htmlFor={`${field}-line`}>
        Line
      </label>
      <select
        id={`${field}-line`}
        ref={select}
        value={chosen}
        onChange={(event) => setChosen(Number(event.target.value))}
      >
        {places.map((one, at) => (
          <option key={`${one.side}${one.line}`} value={at}>
            {one.line}
            {one.side === "old" ? " (removed)" : ""}: {one.text.slice(0, 60)}
          </option>
        ))}
      </select>
      <label className="lab" htmlFor={`${field}-text`}>
        Comment for the agent
      </label>
      <textarea
        id={`${field}-text`}
        rows={2}
        maxLength={MAX_COMMENT_CHARS}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {problem && (
        <p className="bad" role="alert">
          <ProblemText problem={problem} />
        </p>
      )}
      <div className="sayrow">
        <Button look="primary" size="small" type="submit" disabled={busy || text.trim() === ""}>
          Add comment
        </Button>
        <Button size="small" onClick={() => onDone(false)}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

/** One comment below its line. */
export function Comment({ comment }: { comment: DraftCommentRow }) {
  return (
    <div className="linecomment">
      <Icon name="person" />
      <span>
        <b>{plain(comment.by)}</b> <span className="says">{plain(comment.text)}</span>
      </span>
    </div>
  );
}

/** All comments on a submission, in the order of its files. */
export function CommentList({ detail }: { detail: DraftDetail }) {
  const now = useNow(10_000);
  const all = detail.files.flatMap((file) => [
    ...file.hunks.flatMap((hunk) => hunk.lines.flatMap((line) => line.comments)),
    ...file.comments,
  ]);
  return (
    <section className="panel commentlist" aria-label="Comments">
      <h2>Comments</h2>
      {all.length === 0 && (
        <Empty title="No comments yet">Comment on a line of the diff to tell the agent what to change.</Empty>
      )}
      {all.length > 0 && (
        <ul>
          {all.map((comment, at) => (
            <li key={at}>
              <span className="mono">
                {plain(comment.path)}:{comment.line}
                {comment.side === "old" && " (removed)"}
              </span>{" "}
              <span className="says">{plain(comment.text)}</span>{" "}
              <span className="muted">
                {plain(comment.by)}, {ago(comment.at, now)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
