import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "react-router";
import { asProblem, post } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import { callsPath } from "../calls/filters";
import type { EventPage } from "../gen/api";
import type { RunView } from "../gen/run";
import { count, plain, shortId, timeWithSeconds } from "../model/format";
import { isOver } from "../model/reduce";
import { isSynthetic, reached } from "../model/select";
import type { LinkState } from "../stream/stream";
import { Button, ButtonLink, Crumb, Note, Tag } from "../ui/parts";
import { useToast } from "../ui/toast";
import { ForkAction } from "./fork";
import { isolationFix, isolationWords } from "./isolation";
import { MOVES_ID } from "./review";

/** The number of events that are searched for failed calls. */
const LAST_EVENTS = 500;

/** The header of a run's page: title, connection state and actions. */
export function RunHead({
  view,
  link,
  title,
  code,
  refresh,
}: {
  view: RunView;
  link: LinkState;
  title: string;
  code?: string;
  refresh: () => void;
}) {
  const { consult, about } = view;
  return (
    <div className="rhead">
      <div>
        <Crumb>
          <span className="mono">{shortId(about.run_id)}</span>
          <Tag>{about.models ?? about.model}</Tag>
          {consult && isSynthetic(consult) && (
            <Tag tone="warn" icon="warn">
              Source data is model-written
            </Tag>
          )}
          {consult?.gathered?.fictional && <Tag tone="warn">Fictional company</Tag>}
          {willWait(view) && <Tag icon="person">Pauses after the moves</Tag>}
        </Crumb>
        <h1>
          {title}
          {code && <span className="mono">{code}</span>}
        </h1>
      </div>
      <div className="ract">
        <LinkChip link={link} view={view} />
        <Actions view={view} refresh={refresh} />
      </div>
    </div>
  );
}

/** Whether the run will pause after the moves. Once paused, a banner explains it. */
function willWait({ about, consult, status }: RunView): boolean {
  if (!about.pauses_after_moves || isOver(status) || status.state === "paused") return false;
  return !consult || reached(consult) <= 3;
}

export function LinkChip({ link, view }: { link: LinkState; view: RunView }) {
  const seq = count(view.as_of_seq);
  const [look, word, detail] = ((): [string, string, string] => {
    switch (link.kind) {
      case "live":
        if (!view.about.driven) return ["idle", "Connected", `event ${seq}`];
        return ["", link.by === "stream" ? "Live" : "Live, polling", `event ${seq}`];
      case "waiting":
        if (link.reason === "offline") return ["off", "Offline", `from event ${seq}`];
        return ["wait", `Reconnecting in ${Math.max(1, Math.round(link.retryInMs / 1000))} s`, `from event ${seq}`];
      case "connecting":
        return ["wait", "Connecting", `from event ${seq}`];
      case "paused":
        return ["wait", "Waiting for you", `event ${seq}`];
      case "ended":
        return ["idle", ended(view), `${seq} events`];
      case "outdated":
        return ["wait", "New version", "reload the page"];
      case "fatal":
        return ["off", link.status === 404 ? "Deleted" : "No access", `event ${seq}`];
    }
  })();
  return (
    <span className={`link ${look}`} data-link={link.kind}>
      <span className="dot" />
      {word}
      <span className="mono at">{detail}</span>
    </span>
  );
}

function ended(view: RunView): string {
  switch (view.status.state) {
    case "complete":
      return "Finished";
    case "failed":
      return "Failed";
    case "cancelled":
      return "Stopped";
    default:
      return "Ended";
  }
}

function Actions({ view, refresh }: { view: RunView; refresh: () => void }) {
  const toast = useToast();
  const [busy, setBusy] = useState<string>();
  const [sure, setSure] = useState(false);
  const run = view.about.run_id;
  const act = async (what: "pause" | "cancel" | "resume", said: string) => {
    setBusy(what);
    try {
      await post(`/api/runs/${run}/${what}`);
      toast({ text: said, tone: "neutral" });
      if (what === "resume") refresh();
    } catch (error) {
      const { message, hint } = asProblem(error);
      toast({ text: hint ? `${message} ${hint}` : message, tone: "bad" });
    }
    setBusy(undefined);
    setSure(false);
  };
  const over = isOver(view.status);
  const stands = view.status.state === "paused" || (!over && !view.about.driven);
  const hasResults = view.consult?.moves.some((one) => one.scored);
  return (
    <>
      {!over && !stands && (
        <Button
          icon="pause"
          disabled={busy !== undefined}
          onClick={() => act("pause", "The run pauses after the calls in progress.")}
        >
          Pause
        </Button>
      )}
      {stands && view.status.state !== "complete" && (
        <Button
          icon="play"
          look="primary"
          disabled={busy !== undefined}
          onClick={() => act("resume", "The run continues. Completed calls are not repeated.")}
        >
          Resume
        </Button>
      )}
      {!over &&
        (sure ? (
          <>
            <Button look="primary" disabled={busy !== undefined} onClick={() => act("cancel", "The run was stopped.")}>
              Stop permanently
            </Button>
            <Button onClick={() => setSure(false)}>Keep running</Button>
          </>
        ) : (
          <Button icon="stop" onClick={() => setSure(true)}>
            Stop
          </Button>
        ))}
      <Button
        icon="link"
        onClick={async () => {
          try {
            await navigator.clipboard.writeText(location.href);
            toast({ text: "Link to this view copied.", tone: "neutral" });
          } catch {
            toast({ text: "The browser blocked copying. Copy the address from the address bar.", tone: "bad" });
          }
        }}
      >
        Copy link
      </Button>
      <ForkAction view={view} />
      <ButtonLink to={callsPath(run)}>Calls</ButtonLink>
      {hasResults && (
        <ButtonLink to={`/runs/${run}/results`} look={over ? "primary" : undefined}>
          Results
        </ButtonLink>
      )}
    </>
  );
}

/** Warnings above a run; nothing if everything is fine. */
export function Banners({ view, link, refresh }: { view: RunView; link: LinkState; refresh: () => void }) {
  const found: [string, ReactNode][] = [];
  const asOf = view.updated_at ? `as of ${timeWithSeconds(view.updated_at)}` : "";
  if (link.kind === "waiting" && (link.reason === "offline" || link.attempt >= 3))
    found.push([
      "offline",
      <Note key="offline" tone="bad" alert>
        <b>{link.reason === "offline" ? "This browser is offline." : "The server is not responding."}</b> The run
        continues without this page. This view is from event {count(view.as_of_seq)}, {asOf}, and updates automatically.
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
        <b>Debates run {isolationWords(view.isolation ?? "none")}.</b> {plain(reason)}. {isolationFix(reason)}
      </Note>,
    ]);
  const { status } = view;
  if (status.state === "paused")
    found.push(["paused", <Paused key="paused" status={status} view={view} refresh={refresh} />]);
  else if (status.state === "failed")
    found.push([
      "failed",
      <Note key="failed" tone="bad">
        <b>The run failed.</b> {plain(status.detail)} {status.model_failure === "auth" && <KeyHint />}{" "}
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
        <b>This run is not being executed.</b> The server stopped while it was running. Resume it: completed calls are
        not repeated.
      </Note>,
    ]);
  if (found.length === 0) return null;
  return <div className="banner">{found.map(([, note]) => note)}</div>;
}

function Paused({
  status,
  view,
  refresh,
}: {
  status: Extract<RunView["status"], { state: "paused" }>;
  view: RunView;
  refresh: () => void;
}) {
  const detail = plain(status.detail);
  switch (status.reason) {
    case "budget":
      return (
        <Note>
          <b>Spend limit reached.</b> {detail} Results so far are kept. <MoreBudget view={view} refresh={refresh} />
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
          <b>Paused.</b> {detail}
        </Note>
      );
  }
}

/** Reviewers get a link to the moves; other users see who decides. */
function WaitsForPerson({ detail }: { detail: string }) {
  const may = useMay("review");
  if (may === false)
    return (
      <>
        <b>Waiting for review.</b> {detail} A reviewer can decide here, or with <code>moothall moves</code>.
      </>
    );
  return (
    <>
      <b>Waiting for you.</b> {detail}{" "}
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
  const { about, usage, as_of_seq } = view;
  const after = Math.max(0, as_of_seq - LAST_EVENTS);
  const page = useGet<EventPage>(
    usage.failed_calls > 0 ? `/api/runs/${about.run_id}/events.json?after=${after}&limit=${LAST_EVENTS}` : null,
  );
  const failed = page.data?.events.findLast((event) => event.type === "model_failed");
  const calls = `${count(usage.failed_calls)} of ${count(usage.calls + usage.extra_calls)} calls`;
  return (
    <Note tone={usage.failed_calls > 0 ? "bad" : "neutral"}>
      <b>The run ended without a recommendation.</b> {usage.failed_calls > 0 && `${calls} returned no usable answer. `}
      {failed && (
        <>
          Last error: {plain(failed.kind)}, {plain(failed.detail)}. {failed.kind === "auth" && <KeyHint />}{" "}
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
      <Link to="/settings">Settings</Link> shows which keys are set and how to add one.
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
function MoreBudget({ view, refresh }: { view: RunView; refresh: () => void }) {
  const toast = useToast();
  const [dollars, setDollars] = useState(() => (((view.about.cap_micro_usd ?? 0) * 2) / 1e6 || 6).toFixed(2));
  const resume = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await post(`/api/runs/${view.about.run_id}/resume`, { budget_usd: dollars });
      refresh();
    } catch (error) {
      const { message, hint } = asProblem(error);
      toast({ text: hint ? `${message} ${hint}` : message, tone: "bad" });
    }
  };
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
      <Button size="small" type="submit">
        Resume
      </Button>
    </form>
  );
}
