import { useEffect, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import { type Choices, NO_CHOICES } from "../drafts/choices";
import { CommentList } from "../drafts/comments";
import { FileDiff, type FileReview } from "../drafts/diff";
import { SayBar } from "../drafts/say";
import { useDraftNews } from "../drafts/use-news";
import { stateTone, stateWords, submissions } from "../drafts/words";
import type { DraftDetail, DraftList } from "../gen/api";
import { ago, plain } from "../model/format";
import { CodeText, ProblemText } from "../ui/code-text";
import { useKeys } from "../ui/keys";
import { Button, Empty, Loading, Note, Tag } from "../ui/parts";
import { useNow } from "../ui/use-now";

const SAID = { approve: "Approved", reject: "Rejected", send_back: "Sent back" } as const;

/** Whether the draft changed since it was shown, other than by the decision of a reviewer. */
function differs(shown: DraftDetail, now: DraftDetail): boolean {
  if (now.draft.reviewed?.has_changes) return false;
  const proposed = ({ draft, files }: DraftDetail) => [draft.seal, ...files.map((file) => file.draft.revision)].join();
  return shown.draft.state === "escalated" && proposed(shown) !== proposed(now);
}

/** One submission: its diff and the review buttons. */
export default function Draft() {
  const { draftId = "" } = useParams();
  const navigate = useNavigate();
  const news = useDraftNews();
  const now = useNow(10_000);
  const may = useMay("review") !== false;
  const { data, problem, reload } = useGet<DraftDetail>(`/api/drafts/${encodeURIComponent(draftId)}`, news);
  const { data: list } = useGet<DraftList>("/api/drafts?state=escalated", news);
  const [shown, setShown] = useState<DraftDetail>();
  const [kept, setKept] = useState<{ seal: string | null; choices: Choices }>();
  // The page does not replace the diff by itself: reviewers decide on the version that they have read.
  const isOther = shown?.draft.draft_id === draftId && data !== undefined && differs(shown, data);
  const detail = isOther ? shown : data;
  useEffect(() => {
    if (!isOther) setShown(data);
  }, [data, isOther]);
  useEffect(() => {
    document.title = detail ? `${plain(detail.draft.path)} · Draft · Moothall` : "Draft · Moothall";
  }, [detail]);
  const step = (by: 1 | -1) => {
    const waiting = submissions(list?.drafts ?? []);
    const at = waiting.findIndex(({ files }) => files.some((file) => file.draft_id === draftId));
    const next = waiting[at < 0 ? 0 : at + by];
    if (next) navigate(`/drafts/${next.first.draft_id}`);
  };
  const leave = () => navigate("/drafts");
  useKeys({ j: () => step(1), k: () => step(-1), Escape: leave });
  if (problem?.code === "draft-not-found")
    return (
      <Empty page title="Draft not found" action={<Link to="/drafts">All drafts</Link>}>
        Check the address, or start the server with the workspace of this draft.
      </Empty>
    );
  if (!detail) {
    if (!problem) return <Loading what="the draft" />;
    return (
      <Empty page title="Could not load the draft" action={<Button onClick={reload}>Try again</Button>}>
        <ProblemText problem={problem} />
      </Empty>
    );
  }
  const { draft, files } = detail;
  const more = files.length - 1;
  // Choices are about one version; another one starts without any.
  const choices = kept?.seal === draft.seal ? kept.choices : NO_CHOICES;
  const choose = (next: Choices) => setKept({ seal: draft.seal, choices: next });
  const isWaiting = draft.state === "escalated" && !isOther;
  const review: FileReview | undefined =
    isWaiting && may
      ? {
          choices,
          hasHunks: detail.hunk_count > 1 && detail.may_be_approved_here && detail.shows_all,
          mayEdit: detail.may_be_approved_here && detail.shows_all,
          onHunk: (hunkId, choice) => choose({ ...choices, hunks: { ...choices.hunks, [hunkId]: choice } }),
          onEdit: (draftId, text) => {
            const { [draftId]: _, ...others } = choices.edits;
            choose({ ...choices, edits: text === undefined ? others : { ...others, [draftId]: text } });
          },
          onCommented: reload,
        }
      : undefined;
  return (
    <div className="res draftpage fade">
      <nav className="crumb" aria-label="Where you are">
        <Link to="/drafts">Drafts</Link>
        <span aria-hidden="true">/</span>
        <span className="mono">{draft.draft_id.slice(0, 10)}</span>
        <Tag tone={stateTone(data?.draft.state ?? draft.state)}>{stateWords(data?.draft.state ?? draft.state)}</Tag>
      </nav>
      <h1 className="pagetitle path">
        {plain(draft.path)}
        {more > 0 && <span className="muted"> and {more} more</span>}
      </h1>
      <p className="muted draftmeta">
        {plain(draft.owner)} for <span className="mono">{plain(draft.task_id)}</span>,{" "}
        {draft.submitted_at ? `submitted ${ago(draft.submitted_at, now)}` : "not submitted yet"}, revision{" "}
        {draft.revision}
      </p>
      {draft.summary !== "" && (
        <blockquote className="agent draftsays" dir="auto">
          {plain(draft.summary)}
        </blockquote>
      )}
      <div className="warnings">
        {isOther && (
          <Note alert>
            <b>The draft changed while you were reading.</b> A decision would not apply to the version shown here.{" "}
            <Button size="small" onClick={() => setShown(data)}>
              Show the current version
            </Button>
          </Note>
        )}
        {draft.conflict !== null && draft.state === "conflict" && (
          <Note tone="bad">
            <b>{plain(draft.conflict)} changed since the draft was made.</b> Nothing was written. The agent can rebase
            it: <code>moothall draft rebase {draft.draft_id}</code>
          </Note>
        )}
        {draft.reviewed && (
          <Note tone={draft.reviewed.say === "approve" ? "good" : "neutral"} icon="person">
            <b>
              {SAID[draft.reviewed.say]}
              {draft.reviewed.has_changes && " with changes"} by {plain(draft.reviewed.by)}.
            </b>{" "}
            {plain(draft.reviewed.reason)}
          </Note>
        )}
        {problem && (
          <Note tone="bad" alert>
            <b>
              <CodeText text={problem.message} />
            </b>{" "}
            {problem.hint && <CodeText text={problem.hint} />}
          </Note>
        )}
      </div>
      {files.map((file) => (
        <FileDiff key={`${file.draft.draft_id} ${draft.seal}`} file={file} review={review} />
      ))}
      <CommentList detail={detail} />
      {isWaiting && may && <SayBar key={draft.seal} detail={detail} choices={choices} onSaid={reload} />}
      {isWaiting && !may && (
        <Note tone="neutral" icon="person">
          A reviewer decides this.
        </Note>
      )}
    </div>
  );
}
