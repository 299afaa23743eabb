import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { asProblem, type Problem, post } from "../api/client";
import type { DraftDetail, DraftReviewResponse, DraftUndecided } from "../gen/api";
import { FormProblem } from "../ui/form-problem";
import { useKeys } from "../ui/keys";
import { Button, Note } from "../ui/parts";
import { useToast } from "../ui/toast";
import { amendments, approvalWords, type Choices, hasResult } from "./choices";
import { Finding } from "./diff";
import { stateWords } from "./words";

export type Word = "approve" | "reject" | "send-back";

const WORDS = {
  approve: { key: "a", name: "Approve", ask: "Comment (optional)", done: "Approve this version" },
  reject: { key: "r", name: "Reject", ask: "Reason for rejecting", done: "Reject draft" },
  "send-back": { key: "c", name: "Send back", ask: "What the agent should change", done: "Send back" },
} as const;

/**
 * The review buttons. A decision is bound to the seal (hash) of the version shown, and to the seal of the result if the
 * gate found something new in what the reviewer chose.
 */
export function SayBar({ detail, choices, onSaid }: { detail: DraftDetail; choices: Choices; onSaid: () => void }) {
  const { draft, files } = detail;
  const toast = useToast();
  const field = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const [word, setWord] = useState<Word>();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [undecided, setUndecided] = useState<DraftUndecided>();
  const closed = !detail.may_be_approved_here || !detail.shows_all || !hasResult(detail, choices);
  // Findings are about the choices that were sent.
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the choices invalidates the findings
  useEffect(() => setUndecided(undefined), [choices]);
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
    if (!word || busy || (word === "approve" ? closed : reason.trim() === "")) return;
    setBusy(true);
    try {
      const path = `/api/drafts/${draft.draft_id}/${word}`;
      const changed = word === "approve" ? amendments(detail, choices) : [];
      const more = changed.length > 0 ? { files: changed, confirm: undecided?.confirm } : {};
      const said = await post<DraftReviewResponse>(path, { seal: draft.seal, reason: reason.trim(), ...more });
      if (said.undecided) {
        setUndecided(said.undecided);
        setBusy(false);
        return;
      }
      const decided = said.drafts.find((one) => one.state !== "rejected") ?? said.drafts[0];
      const state = decided?.state;
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
      <FormProblem problem={problem} />
      {!detail.may_be_approved_here && (
        <Note tone="neutral">
          The policy does not allow approvals in a browser. Use <code>moothall review</code>.
        </Note>
      )}
      {undecided && word === "approve" && (
        <Note tone={undecided.is_rejected ? "bad" : "warn"} alert>
          <b>
            {undecided.is_rejected ? "The gate rejects the result." : "The gate has new findings about the result."}
          </b>{" "}
          Nothing was applied.
          {undecided.findings.map((finding, at) => (
            <Finding key={at} finding={finding} />
          ))}
        </Note>
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
              {one === "approve" ? approvalWords(detail, choices) : WORDS[one].name}
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
            <Button
              look="primary"
              type="submit"
              disabled={busy || (word === "approve" ? closed || undecided?.is_rejected === true : reason.trim() === "")}
            >
              {undecided && !undecided.is_rejected && word === "approve" ? "Approve anyway" : WORDS[word].done}
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
