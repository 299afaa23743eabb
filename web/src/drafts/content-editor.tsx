// The reviewer's own version of a file: a text field with line numbers. It is applied only if the gate accepts it.
import { type UIEvent, useEffect, useId, useRef } from "react";
import { useGet } from "../api/use-get";
import type { DraftContent, DraftRow } from "../gen/api";
import { plain } from "../model/format";
import { ProblemText } from "../ui/code-text";
import { Button, Loading, Note } from "../ui/parts";

export function ContentEditor({
  draft,
  text,
  onChange,
  onClose,
}: {
  draft: DraftRow;
  /** The reviewer's version; `undefined` before the first change. */
  text: string | undefined;
  onChange: (text: string | undefined) => void;
  onClose: () => void;
}) {
  const { data, problem } = useGet<DraftContent>(`/api/drafts/${draft.draft_id}/content`, draft.seal);
  const field = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const isLoaded = data !== undefined;
  useEffect(() => {
    if (isLoaded) input.current?.focus();
  }, [isLoaded]);
  const leave = () => {
    onChange(undefined);
    onClose();
  };
  const close = <Button onClick={leave}>{text === undefined ? "Cancel" : "Discard my version"}</Button>;
  if (problem)
    return (
      <div className="contentedit">
        <Note tone="bad" alert>
          <ProblemText problem={problem} />
        </Note>
        {close}
      </div>
    );
  if (!data) return <Loading what="the content" />;
  // Only the version on the screen may be edited.
  if (data.content === null || data.seal !== draft.seal)
    return (
      <div className="contentedit">
        <Note>
          {data.seal === draft.seal
            ? "This file has hidden characters, lines that end in different ways, or is too large for a text field."
            : "The draft changed while you were reading."}{" "}
          <code>moothall review hunks {draft.draft_id}</code> opens it in your editor.
        </Note>
        {close}
      </div>
    );
  const proposed = data.content;
  // A text field has "\n" alone; the server offers no text with both kinds of line ends.
  const lineEnd = proposed.includes("\r\n") ? "\r\n" : "\n";
  const shown = (text ?? proposed).replaceAll("\r\n", "\n");
  const changed = (value: string) => {
    const own = value.replaceAll("\n", lineEnd);
    onChange(own === proposed ? undefined : own);
  };
  const scrolled = (event: UIEvent<HTMLTextAreaElement>) => {
    if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop;
  };
  const lines = shown.split("\n").length;
  return (
    <div className="contentedit">
      <label className="lab" htmlFor={field}>
        Your version of {plain(draft.path)}
      </label>
      <div className="numbered">
        <div className="numbers mono" ref={gutter} aria-hidden="true">
          {Array.from({ length: lines }, (_, at) => at + 1).join("\n")}
        </div>
        <textarea
          id={field}
          ref={input}
          className="mono"
          rows={Math.min(Math.max(lines, 6), 24)}
          wrap="off"
          spellCheck={false}
          value={shown}
          onScroll={scrolled}
          onChange={(event) => changed(event.target.value)}
        />
      </div>
      <div className="sayrow">
        {close}
        <span className="muted">
          {text === undefined
            ? "Change the text, then approve your version below."
            : "Your version is applied instead of the proposed one when you approve it."}
        </span>
      </div>
    </div>
  );
}
