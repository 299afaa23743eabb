import clsx from "clsx";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "react-router";
import { asProblem, post, problemWords } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import { callsPath } from "../calls/filters";
import type { EventPage } from "../gen/api";
import type { RunView } from "../gen/run";
import { capital, count, plain, shortId, timeWithSeconds } from "../model/format";
import { isOver } from "../model/reduce";
import { isSynthetic, reached } from "../model/select";
import { CONDITION, conditionOfView } from "../model/status";
import { NotifyButton } from "../notify/notify-button";
import type { LinkState } from "../stream/stream";
import { CodeText } from "../ui/code-text";
import { Button, ButtonLink, Crumb, Note, Tag } from "../ui/parts";
import { useToast } from "../ui/toast";
import { ForkAction } from "./fork";
import { isolationFix, isolationReason, isolationWords } from "./isolation";
import { type Action, type Recheck, usePending } from "./pending";
import { MOVES_ID } from "./review";

const RUN_LIVES_IN_SERVER =
  "Runs are executed by the server: if it has stopped, this run has stopped too and can be resumed later.";

/** The number of events that are searched for failed calls. */
const LAST_EVENTS = 500;

/** The header of a run's page: title, status and actions. */
export function RunHead({
  view,
  link,
  title,
  code,
  recheck,
}: {
  view: RunView;
  link: LinkState;
  title: string;
  code?: string;
  recheck: Recheck;
}) {
  const { consult, about } = view;
  const actions = useRunActions(view, recheck);
  return (
    <div className="rhead">
      <div>
        <Crumb>
          <span className="mono">{shortId(about.run_id)}</span>
          <Tag>{about.models ?? about.model}</Tag>
          {consult && isSynthetic(consult) && (
            <Tag tone="warn" icon="warn">
              AI-generated (not real filings)
            </Tag>
          )}
          {consult?.gathered?.fictional && <Tag>Fictional company</Tag>}
          {willWait(view) && <Tag icon="person">Pauses after the moves</Tag>}
        </Crumb>
        <h1>
          {title}
          {code && <span className="mono">{code}</span>}
        </h1>
      </div>
      <div className="ract">
        <StatusChip link={link} view={view} pending={actions.pending} />
        <Actions view={view} actions={actions} />
      </div>
    </div>
  );
}

/** Whether the run will pause after the moves. Once paused, a banner explains it. */
function willWait({ about, consult, status }: RunView): boolean {
  if (!about.pauses_after_moves || isOver(status) || status.state === "paused") return false;
  return !consult || reached(consult) <= 3;
}

/** The one status of the run: what it does, or that this page does not know. */
export function StatusChip({ link, view, pending }: { link: LinkState; view: RunView; pending?: Action | undefined }) {
  const mayReview = useMay("review") !== false;
  const seq = count(view.as_of_seq);
  const [look, word, detail] = ((): [string, string, string] => {
    switch (link.kind) {
      case "waiting":
        return [
          "off",
          "Disconnected",
          link.reason === "offline"
            ? "browser is offline"
            : `retry in ${Math.max(1, Math.round(link.retryInMs / 1000))} s`,
        ];
      case "connecting":
        return ["wait", "Connecting", `from event ${seq}`];
      case "paused":
        return ["idle", "Disconnected", "in the background"];
      case "outdated":
        return ["wait", "New version", "reload the page"];
      case "fatal":
        return ["off", link.status === 404 ? "Deleted" : "No access", `event ${seq}`];
      case "live":
      case "ended": {
        if (pending) return ["wait", PENDING[pending], `event ${seq}`];
        const condition = conditionOfView(view);
        const { word, tone } = CONDITION[condition];
        const shown = condition === "needs-review" && !mayReview ? "Needs review" : word;
        return [{ live: "", warn: "wait", bad: "off", none: "idle" }[tone], shown, `event ${seq}`];
      }
    }
  })();
  return (
    <span className={clsx("link", look)} data-link={link.kind}>
      <span className="dot" />
      {word}
      <span className="mono at">{detail}</span>
    </span>
  );
}

const PENDING: Record<Action, string> = { pause: "Pausing…", resume: "Resuming…", cancel: "Stopping…" };

const SAID: Record<Action, string> = {
  pause: "Pausing: calls in progress will finish first.",
  resume: "Resumed. Finished calls are not repeated.",
  cancel: "The run is being stopped.",
};

interface RunActions {
  pending: Action | undefined;
  act: (what: Action) => Promise<void>;
}

function useRunActions(view: RunView, recheck: Recheck): RunActions {
  const toast = useToast();
  const pending = usePending(view, recheck);
  const act = async (what: Action) => {
    try {
      await pending.request(what, () => post(`/api/runs/${view.about.run_id}/${what}`));
      toast({ text: SAID[what], tone: "neutral" });
    } catch (error) {
      toast({ text: problemWords(asProblem(error)), tone: "bad" });
    }
  };
  return { pending: pending.what, act };
}

/** At most one primary action: resume, or the results. A review and a spend limit have theirs below. */
function Actions({ view, actions: { pending, act } }: { view: RunView; actions: RunActions }) {
  const toast = useToast();
  const may = useMay("run") !== false;
  const [sure, setSure] = useState(false);
  const run = view.about.run_id;
  const over = isOver(view.status);
  const { status } = view;
  const stands = status.state === "paused" || (!over && !view.about.driven);
  const decidedBelow = status.state === "paused" && (status.reason === "question" || status.reason === "budget");
  const hasResults = view.consult?.moves.some((one) => one.scored);
  const waits = pending !== undefined;
  return (
    <>
      {may && !over && !stands && (
        <Button icon="pause" disabled={waits} onClick={() => act("pause")}>
          {pending === "pause" ? PENDING.pause : "Pause"}
        </Button>
      )}
      {may && stands && !decidedBelow && (
        <Button icon="play" look="primary" disabled={waits} onClick={() => act("resume")}>
          {pending === "resume" ? PENDING.resume : "Resume"}
        </Button>
      )}
      {may &&
        !over &&
        (sure ? (
          <>
            <Button
              look="danger"
              onClick={() => {
                setSure(false);
                void act("cancel");
              }}
            >
              Stop permanently
            </Button>
            <Button onClick={() => setSure(false)}>Keep running</Button>
          </>
        ) : (
          <Button icon="stop" disabled={pending === "cancel"} onClick={() => setSure(true)}>
            {pending === "cancel" ? PENDING.cancel : "Stop"}
          </Button>
        ))}
      <NotifyButton view={view} />
      <Button
        icon="link"
        onClick={async () => {
          try {
            await navigator.clipboard.writeText(location.href);
            toast({ text: "Link copied.", tone: "neutral" });
          } catch {
            toast({ text: "The browser blocked copying. Copy the address from the address bar.", tone: "bad" });
          }
        }}
      >
        Copy link
      </Button>
      <ForkAction view={view} />
      <ButtonLink to={callsPath(run)}>Calls</ButtonLink>
      {hasResults && view.consult && <ButtonLink to={`/runs/${run}/memo`}>Memo</ButtonLink>}
      {hasResults && (
        <ButtonLink to={`/runs/${run}/results`} look={over ? "primary" : undefined}>
          Results
        </ButtonLink>
      )}
    </>
  );
}

/** Warnings above a run; nothing if everything is fine. */
export function Banners({ view, link, recheck }: { view: RunView; link: LinkState; recheck: Recheck }) {
  const may = useMay("run") !== false;
  const found: [string, ReactNode][] = [];
  const asOf = view.updated_at ? `as of ${timeWithSeconds(view.updated_at)}` : "";
  if (link.kind === "waiting" && (link.reason === "offline" || link.attempt >= 2))
    found.push([
      "offline",
      <Note key="offline" tone="bad" alert>
        {link.reason === "offline" ? (
          <>
            <b>This browser is offline.</b> The run does not need this page; it continues while the server runs.
          </>
        ) : (
          <>
            <b>Can't reach the server.</b> {isOver(view.status) ? "" : RUN_LIVES_IN_SERVER}
          </>
        )}{" "}
        Showing data {asOf}; reconnecting.
      </Note>,
    ]);
  if (link.kind === "outdated")
    found.push([
      "outdated",
      <Note key="outdated" alert>
        <b>A new version is available.</b> Reload the page to continue.{" "}
        <Button size="small" onClick={() => location.reload()}>
          Reload
        </Button>
      </Note>,
    ]);
  if (link.kind === "fatal")
    found.push([
      "fatal",
      <Note key="fatal" tone="bad" alert>
        <b>{link.status === 404 ? "This run was deleted." : "You no longer have access to this run."}</b> This view is{" "}
        {asOf}.
      </Note>,
    ]);
  for (const { role, model, fallback, reason } of view.model_fallbacks ?? [])
    found.push([
      `${role} ${model} ${fallback}`,
      <Note key={`${role} ${model} ${fallback}`}>
        <b>{plain(`${role}: ${model} is unavailable (${reason}).`)}</b> {plain(`Using ${fallback} instead.`)}
      </Note>,
    ]);
  for (const reason of view.fallbacks)
    found.push([
      reason,
      <Note key={reason}>
        <b>Debates run {isolationWords(view.isolation ?? "none")}.</b> <CodeText text={isolationReason(reason)} />{" "}
        <CodeText text={isolationFix(reason)} />
      </Note>,
    ]);
  const { status } = view;
  if (status.state === "paused")
    found.push(["paused", <Paused key="paused" status={status} view={view} recheck={recheck} />]);
  else if (status.state === "failed")
    found.push([
      "failed",
      <Note key="failed" tone="bad">
        <b>The run failed.</b> <CodeText text={status.detail} /> {status.model_failure === "auth" && <KeyHint />}{" "}
        <StartAgain view={view} />
      </Note>,
    ]);
  else if (status.state === "complete" && view.consult?.recommended.length === 0)
    found.push(["nothing", <NothingRecommended key="nothing" view={view} />]);
  else if (status.state === "cancelled")
    found.push([
      "cancelled",
      <Note key="cancelled" tone="neutral" icon="stop">
        <b>This run was stopped.</b> Results so far are kept; it cannot be resumed. <StartAgain view={view} />
      </Note>,
    ]);
  else if (status.state === "running" && !view.about.driven && link.kind !== "waiting")
    found.push([
      "interrupted",
      <Note key="interrupted">
        <b>Interrupted: the server stopped during this run.</b> {may && "Resume it; "}finished calls are not repeated.
      </Note>,
    ]);
  if (found.length === 0) return null;
  return <div className="banner">{found.map(([, note]) => note)}</div>;
}

function Paused({
  status,
  view,
  recheck,
}: {
  status: Extract<RunView["status"], { state: "paused" }>;
  view: RunView;
  recheck: Recheck;
}) {
  const detail = <CodeText text={status.detail} />;
  switch (status.reason) {
    case "budget":
      return (
        <Note>
          <b>Spend limit reached.</b> {detail} Results so far are kept.{" "}
          <MoreBudget key={view.as_of_seq} view={view} recheck={recheck} />
        </Note>
      );
    case "question":
      return (
        <Note icon="person">
          <WaitsForPerson detail={detail} />
        </Note>
      );
    case "failure":
      return (
        <Note>
          <b>
            {status.detail.includes(": auth: ")
              ? "The provider rejected the API key or the account."
              : "The model provider did not answer."}
          </b>{" "}
          {detail} Results so far are kept, and no answered call is repeated. Fix the cause, then resume.{" "}
          <Link to="/settings">Settings</Link> shows providers and keys.
        </Note>
      );
    case "person":
      return (
        <Note icon="pause" tone="neutral">
          {/* The usual detail is "paused on request". */}
          {status.detail.startsWith("paused") ? (
            <b>
              <CodeText text={capital(status.detail)} />.
            </b>
          ) : (
            <>
              <b>Paused.</b> {detail}
            </>
          )}
        </Note>
      );
  }
}

/** Reviewers get a link to the moves; other users see who decides. */
function WaitsForPerson({ detail }: { detail: ReactNode }) {
  const may = useMay("review");
  if (may === false)
    return (
      <>
        <b>Needs review.</b> {detail} A reviewer can decide here, or with <code>moothall moves</code>.
      </>
    );
  return (
    <>
      <b>Your review is needed.</b> {detail}{" "}
      <a
        href={`#${MOVES_ID}`}
        onClick={(event) => {
          event.preventDefault();
          const panel = document.getElementById(MOVES_ID);
          panel?.scrollIntoView({ block: "start" });
          panel?.focus({ preventScroll: true });
        }}
      >
        Review the moves
      </a>
    </>
  );
}

/** Explains why a finished consultation recommends nothing. */
function NothingRecommended({ view }: { view: RunView }) {
  const verdict = view.consult?.verdict;
  if (verdict?.tiers.controls.check !== "failed") return <NoUsableAnswers view={view} />;
  return (
    <Note>
      <b>The run ended without a recommendation.</b> {verdict.warning && `${plain(verdict.warning)} `}
      <Link to={`/runs/${view.about.run_id}/results`}>Results</Link>
    </Note>
  );
}

function NoUsableAnswers({ view }: { view: RunView }) {
  const { about, usage, as_of_seq } = view;
  const after = Math.max(0, as_of_seq - LAST_EVENTS);
  const page = useGet<EventPage>(
    usage.failed_calls > 0 ? `/api/runs/${about.run_id}/events.json?after=${after}&limit=${LAST_EVENTS}` : null,
  );
  const failed = page.data?.events.findLast((event) => event.type === "model_failed");
  const calls = `${count(usage.failed_calls)} of ${count(usage.calls + usage.extra_calls)} requests`;
  return (
    <Note tone={usage.failed_calls > 0 ? "bad" : "neutral"}>
      <b>The run ended without a recommendation.</b>{" "}
      {usage.failed_calls > 0 && (
        <>
          <Link to={callsPath(about.run_id, { result: "failed" })}>{calls}</Link> returned no usable answer.{" "}
        </>
      )}
      {failed && (
        <>
          Last error: {plain(failed.kind)}, <CodeText text={failed.detail} />. {failed.kind === "auth" && (
            <KeyHint />
          )}{" "}
        </>
      )}
      <StartAgain view={view} />
    </Note>
  );
}

/** A hint if a provider rejected the API key. */
function KeyHint() {
  return (
    <>
      Replace it with <code>moothall key set PROVIDER</code>; <Link to="/settings">Settings</Link> shows which keys are
      set.
    </>
  );
}

/** A link that starts the same run again. */
function StartAgain({ view }: { view: RunView }) {
  const { about, consult } = view;
  if (about.workflow === "run") {
    // The title of a long task is cut.
    const task = about.title.endsWith("…") ? "" : `?task=${encodeURIComponent(about.title)}`;
    return <Link to={`/tasks${task}`}>Start again</Link>;
  }
  if (!consult?.listed) return <Link to="/">Start again</Link>;
  return <Link to={`/?ticker=${encodeURIComponent(consult.ticker)}`}>Start again</Link>;
}

/** Raises the spend limit and resumes. */
function MoreBudget({ view, recheck }: { view: RunView; recheck: Recheck }) {
  const toast = useToast();
  const may = useMay("run") !== false;
  const [dollars, setDollars] = useState(() => (((view.about.cap_micro_usd ?? 0) * 2) / 1e6 || 6).toFixed(2));
  const pending = usePending(view, recheck);
  const busy = pending.what !== undefined;
  const resume = async (event: FormEvent) => {
    event.preventDefault();
    try {
      // The form goes away with the first event of the resumed run.
      await pending.request("resume", () => post(`/api/runs/${view.about.run_id}/resume`, { budget_usd: dollars }));
    } catch (error) {
      toast({ text: problemWords(asProblem(error)), tone: "bad" });
    }
  };
  if (!may) return null;
  return (
    <form className="morebudget" onSubmit={resume}>
      <label htmlFor="more-budget">New limit</label>
      <span className="money">
        $
        <input
          id="more-budget"
          inputMode="decimal"
          value={dollars}
          onChange={(event) => setDollars(event.target.value.replace(/[^0-9.]/g, ""))}
        />
      </span>
      <Button size="small" look="primary" type="submit" disabled={busy}>
        {busy ? "Resuming…" : "Resume"}
      </Button>
    </form>
  );
}
