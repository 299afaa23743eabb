import { type FormEvent, useEffect, useId, useState } from "react";
import { asProblem, type Problem } from "../api/client";
import { FileDiff } from "../drafts/diff";
import { stateWords } from "../drafts/words";
import type { ReviewLinkDetail } from "../gen/api";
import { dayAndTime, plain } from "../model/format";
import { type Decision, decide, hideToken, readToken, showDraft } from "../review-link/link-api";
import { ProblemText } from "../ui/code-text";
import { FormProblem } from "../ui/form-problem";
import { Button, Empty, Loading, Note, Tag } from "../ui/parts";

const DECISIONS: Record<Decision, { name: string; ask: string; done: string }> = {
  approve: { name: "Approve", ask: "Comment (optional)", done: "Approve this version" },
  reject: { name: "Reject", ask: "Reason for rejecting", done: "Reject draft" },
  send_back: { name: "Send back", ask: "What the agent should change", done: "Send back" },
};

/** The draft of a review link. Opening it changes nothing; a decision uses the link up. */
export default function Review() {
  const [token] = useState(readToken);
  const [link, setLink] = useState<ReviewLinkDetail>();
  const [problem, setProblem] = useState<Problem>();
  const [decided, setDecided] = useState<string>();
  useEffect(() => {
    document.title = "Review a draft · Moothall";
    if (token === "") return;
    hideToken();
    let isGone = false;
    showDraft(token).then(
      (found) => !isGone && setLink(found),
      (error: unknown) => !isGone && setProblem(asProblem(error)),
    );
    return () => {
      isGone = true;
    };
  }, [token]);
  if (token === "")
    return (
      <Empty page title="This link is incomplete" action={<a href="/drafts">All drafts</a>}>
        Open the whole link of the notice, or sign in to review drafts.
      </Empty>
    );
  if (!link) {
    if (!problem) return <Loading what="the draft" />;
    return (
      <Empty page title="This link cannot be used" action={<a href="/drafts">All drafts</a>}>
        <ProblemText problem={problem} />
      </Empty>
    );
  }
  const { draft, files } = link.detail;
  const more = files.length - 1;
  return (
    <div className="res draftpage fade">
      <p className="crumb">
        <span>Notice {link.notice}</span>
        <Tag tone={decided ? undefined : "warn"}>{decided ?? "needs review"}</Tag>
      </p>
      <h1 className="pagetitle path">
        {plain(draft.path)}
        {more > 0 && <span className="muted"> and {more} more</span>}
      </h1>
      <p className="muted draftmeta">
        {plain(draft.owner)} for <span className="mono">{plain(draft.task_id)}</span>. This link works once, until{" "}
        {dayAndTime(link.expires_at)}.
      </p>
      {draft.summary !== "" && (
        <blockquote className="agent draftsays" dir="auto">
          {plain(draft.summary)}
        </blockquote>
      )}
      {files.map((file) => (
        <FileDiff key={file.draft.draft_id} file={file} />
      ))}
      {decided ? (
        <Note tone="good" icon="check" alert>
          <b>Your decision is recorded.</b> {files.length === 1 ? "The draft is" : "The drafts are"} {decided}. You can
          close this page.
        </Note>
      ) : (
        <DecisionForm token={token} link={link} onDecided={setDecided} />
      )}
    </div>
  );
}

function DecisionForm({
  token,
  link,
  onDecided,
}: {
  token: string;
  link: ReviewLinkDetail;
  onDecided: (state: string) => void;
}) {
  const field = useId();
  const [decision, setDecision] = useState<Decision>();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const isClosed = !link.detail.may_be_approved_here || !link.detail.shows_all;
  const isReady = decision === "approve" || reason.trim() !== "";
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (!decision || busy || !isReady) return;
    setBusy(true);
    try {
      const said = await decide(token, decision, reason.trim());
      const state = said.drafts[0]?.state;
      onDecided(state ? stateWords(state) : "decided");
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <div className="saybar panel">
      <FormProblem problem={problem} />
      {isClosed && (
        <Note tone="neutral">
          This draft cannot be approved in a browser. Use <code>moothall review</code>.
        </Note>
      )}
      {!decision && (
        <div className="sayrow">
          {(["approve", "reject", "send_back"] as const).map((one) => (
            <Button
              key={one}
              look={one === "approve" ? "primary" : undefined}
              disabled={one === "approve" && isClosed}
              onClick={() => setDecision(one)}
            >
              {DECISIONS[one].name}
            </Button>
          ))}
          <span className="push muted mono seal" title={link.detail.draft.seal ?? ""}>
            Version {link.detail.draft.seal?.slice(0, 7)}
          </span>
        </div>
      )}
      {decision && (
        <form onSubmit={send}>
          <label className="lab" htmlFor={field}>
            {DECISIONS[decision].ask}
          </label>
          <textarea
            id={field}
            rows={2}
            maxLength={2000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <div className="sayrow">
            <Button look="primary" type="submit" disabled={busy || !isReady}>
              {DECISIONS[decision].done}
            </Button>
            <Button onClick={() => setDecision(undefined)}>Back</Button>
          </div>
        </form>
      )}
    </div>
  );
}
