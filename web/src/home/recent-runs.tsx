import { useState } from "react";
import { Link } from "react-router";
import { useGet } from "../api/use-get";
import type { RunList, RunSummary } from "../gen/api";
import type { RunView } from "../gen/run";
import { ago, plain, usd } from "../model/format";
import { isOver } from "../model/reduce";
import { moveState, ranked } from "../model/select";
import { Button, ButtonLink, Empty, Loading, Note, Tag } from "../ui/parts";
import { useNow } from "../ui/use-now";
import { type RunBar, RunBars } from "../viz/score-bars";

const FIRST = 6;
const MORE = 20;

export function RecentRuns() {
  const now = useNow(5000);
  const [shown, setShown] = useState(FIRST);
  const { data, problem, reload } = useGet<RunList>("/api/runs?limit=200", Math.floor(now / 10_000));
  const all = data?.runs;
  return (
    <section className="sect" aria-label="Recent runs">
      <div className="secthead">
        <h2>Recent runs</h2>
        {all && all.length > 0 && (
          <span className="muted">
            {Math.min(shown, all.length)} of {all.length}
          </span>
        )}
        <span className="more">
          <ButtonLink to="/compare" look="ghost" size="small" icon="compare">
            Compare two runs
          </ButtonLink>
        </span>
      </div>
      {problem && (
        <Note tone="bad" alert>
          <b>{problem.message}</b> {problem.hint}{" "}
          <Button size="small" onClick={reload}>
            Try again
          </Button>
        </Note>
      )}
      {!all && !problem && <Loading what="runs" />}
      {all?.length === 0 && (
        <div className="runs">
          <Empty title="No runs yet">
            Try HLXI, a fictional company. With the model <code>demo</code> it is free.
          </Empty>
        </div>
      )}
      {all && all.length > 0 && (
        <div className="runs">
          {all.slice(0, shown).map((run) => (
            <RunRow key={run.run_id} run={run} now={now} />
          ))}
        </div>
      )}
      {all && all.length > shown && (
        <p className="showmore">
          <Button size="small" look="ghost" onClick={() => setShown(shown + MORE)}>
            Show more
          </Button>
        </p>
      )}
    </section>
  );
}

function RunRow({ run, now }: { run: RunSummary; now: number }) {
  const isConsult = run.workflow === "consult";
  const isRunning = run.state === "running";
  // Active runs are loaded again with the list.
  const { data: view } = useGet<RunView>(`/api/runs/${run.run_id}`, isRunning ? run.events : run.state);
  const [ticker, company] = heading(run, view);
  const outcome = outcomeOf(run, view);
  const done = view?.consult && isOver(view.status) && view.consult.recommended.length > 0;
  return (
    <Link className="run" to={done ? `/runs/${run.run_id}/results` : `/runs/${run.run_id}`}>
      <div className="name">
        <span className="t">{ticker}</span>
        <div className="co">{company}</div>
      </div>
      <div className="bw">{isConsult && <RunBars bars={barsOf(view)} />}</div>
      <div className="out">
        <b>{outcome.line}</b>
        <span>{outcome.detail}</span>
      </div>
      <div className="mono r cost">{run.cost_micro_usd === null ? "" : usd(run.cost_micro_usd)}</div>
      <div className="muted r when">{ago(run.created_at, now)}</div>
      <div className="r state">
        <StateTag run={run} view={view} />
      </div>
    </Link>
  );
}

function heading(run: RunSummary, view: RunView | undefined): [string, string] {
  const consult = view?.consult;
  if (consult) return [plain(consult.ticker), plain(consult.gathered?.company ?? "").replace(/ \(fictional\)$/, "")];
  if (run.workflow === "consult") {
    const [first = "", ...rest] = plain(run.title).split(" ");
    return [
      first,
      rest
        .join(" ")
        .replace(/:.*$/, "")
        .replace(/ \(fictional\)$/, ""),
    ];
  }
  return ["Task", run.model];
}

function outcomeOf(run: RunSummary, view: RunView | undefined): { line: string; detail: string } {
  const consult = view?.consult;
  if (!view || !consult) {
    const attempts = view?.code?.attempts.length;
    return { line: plain(run.title), detail: attempts ? `${attempts} ${attempts === 1 ? "attempt" : "attempts"}` : "" };
  }
  const scored = consult.moves.filter((one) => typeof one.scored?.score === "number").length;
  const [best] = ranked(consult);
  if (consult.recommended.length > 0 && best?.scored) {
    const { score, out_of, spread } = best.scored;
    return { line: plain(best.title ?? best.move_id), detail: `${score} / ${out_of}, score range ${spread}` };
  }
  const layer = consult.layers.findLast((one) => one.state !== "waiting");
  const doing = ["Reading filings", "Drawing inferences", "Proposing moves", "Debating", "Ranking"][layer?.layer ?? 0];
  const live = consult.moves.filter((one) => moveState(one, view) === "live").length;
  switch (view.status.state) {
    case "paused":
      return {
        line: `Paused: ${plain(view.status.detail)}`,
        detail: `${scored} of ${consult.expected_moves} moves scored`,
      };
    case "failed":
      return { line: plain(view.status.detail), detail: "Completed answers are kept" };
    case "cancelled":
      return { line: "Stopped by a user", detail: `${scored} of ${consult.expected_moves} moves scored` };
    default:
      return {
        line: `${doing}, ${scored} of ${consult.expected_moves} moves scored`,
        detail: live > 0 ? `${live} in debate now` : "",
      };
  }
}

function barsOf(view: RunView | undefined): RunBar[] {
  const consult = view?.consult;
  if (!view || !consult) return Array.from({ length: 15 }, () => ({ kind: "later" }));
  const waiting = Math.max(0, consult.expected_moves - consult.moves.length);
  return [
    ...consult.moves.map((one): RunBar => {
      if (one.scored && one.scored.score !== null) {
        const part = Math.max(0, (one.scored.score / one.scored.out_of - 0.3) / 0.7);
        return { kind: "score", part, top: consult.recommended.includes(one.move_id) };
      }
      return { kind: moveState(one, view) === "live" ? "now" : "later" };
    }),
    ...Array.from({ length: waiting }, (): RunBar => ({ kind: "later" })),
  ];
}

function StateTag({ run, view }: { run: RunSummary; view: RunView | undefined }) {
  const state = view ? view.status.state : run.state;
  switch (state) {
    case "running":
      return run.driven ? (
        <Tag icon="run">Running</Tag>
      ) : (
        <Tag tone="warn" icon="pause">
          Interrupted
        </Tag>
      );
    case "paused":
      return (
        <Tag tone="warn" icon="pause">
          Paused
        </Tag>
      );
    case "failed":
      return (
        <Tag tone="bad" icon="warn">
          Failed
        </Tag>
      );
    case "cancelled":
      return <Tag icon="stop">Stopped</Tag>;
    default:
      if (run.verdict === "fail")
        return (
          <Tag tone="bad" icon="close">
            Did not pass
          </Tag>
        );
      if (run.verdict === "needs-person")
        return (
          <Tag tone="warn" icon="person">
            Needs review
          </Tag>
        );
      return <Tag icon="check">Done</Tag>;
  }
}
