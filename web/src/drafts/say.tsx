import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { asProblem, type Problem, post } from "../api/client";
import type { DraftDetail, DraftReviewResponse } from "../gen/api";
import { CodeText } from "../ui/code-text";
import { useKeys } from "../ui/keys";
import { Button, Note } from "../ui/parts";
import { useToast } from "../ui/toast";
import { stateWords } from "./words";

export type Word = "approve" | "reject" | "send-back";

const WORDS = {
  approve: { key: "a", name: "Approve", ask: "Comment (optional)", done: "Approve this version" },
  reject: { key: "r", name: "Reject", ask: "Reason for rejecting", done: "Reject draft" },
  "send-back": { key: "c", name: "Send back", ask: "What the agent should change", done: "Send back" },
} as const;

/** The review buttons. A decision is bound to the seal (hash) of the version shown. */
export function SayBar({ detail, onSaid }: { detail: DraftDetail; onSaid: () => void }) {
  const { draft, files } = detail;
  const toast = useToast();
  const field = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const [word, setWord] = useState<Word>();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const closed = !detail.may_be_approved_here || !detail.shows_all;
  const begin = (next: Word) => {
    if (next === "approve" && closed) return;
    setProblem(undefined);
    setWord(next);
  };
  useKeys({ a: () => begin("approve"), r: () => begin("reject"), c: () => begin("send-back") });
  useEffect(() => {
    if (word) input.current?.focus();
  }, [word]);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (!word || busy || (word !== "approve" && reason.trim() === "")) return;
    setBusy(true);
    try {
      const path = `/api/drafts/${draft.draft_id}/${word}`;
      const said = await post<DraftReviewResponse>(path, { seal: draft.seal, reason: reason.trim() });
      const state = said.drafts[0]?.state;
      if (state)
        toast({
          text: `${files.length === 1 ? "The draft is" : "The drafts are"} ${stateWords(state)}.`,
          tone: "neutral",
        });
      setWord(undefined);
      setReason("");
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
    onSaid();
  };
  const typed = (event: KeyboardEvent) => {
    if (event.key === "Escape") setWord(undefined);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(event);
  };
  return (
    <div className="saybar panel">
      {problem && (
        <Note tone="bad" alert>
          <b>
            <CodeText text={problem.message} />
          </b>{" "}
          {problem.hint && <CodeText text={problem.hint} />}
        </Note>
      )}
      {!detail.may_be_approved_here && (
        <Note tone="neutral">The policy does not allow approvals in a browser. Use `moothall review`.</Note>
      )}
      {!word && (
        <div className="sayrow">
          {(["approve", "reject", "send-back"] as const).map((one) => (
            <Button
              key={one}
              look={one === "approve" ? "primary" : undefined}
              disabled={one === "approve" && closed}
              onClick={() => begin(one)}
            >
              {WORDS[one].name}
              <span className="kbd only-w" aria-hidden="true">
                {WORDS[one].key}
              </span>
            </Button>
          ))}
          <span className="push muted mono seal" title={draft.seal ?? ""}>
            Version {draft.seal?.slice(0, 7)}
          </span>
        </div>
      )}
      {word && (
        <form onSubmit={send} onKeyDown={typed}>
          <label className="lab" htmlFor={field}>
            {WORDS[word].ask}
          </label>
          <textarea
            id={field}
            ref={input}
            rows={2}
            maxLength={2000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <div className="sayrow">
            <Button look="primary" type="submit" disabled={busy || (word !== "approve" && reason.trim() === "")}>
              {WORDS[word].done}
            </Button>
            <Button onClick={() => setWord(undefined)}>Back</Button>
            <span className="push muted only-w">
              <span className="kbd">Ctrl Enter</span> sends, <span className="kbd">Esc</span> goes back
            </span>
          </div>
        </form>
      )}
    </div>
  );
}
