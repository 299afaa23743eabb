import { Link } from "react-router";
import { useGet } from "../api/use-get";
import type { RunList, RunSummary } from "../gen/api";
import { ago, count, usd } from "../model/format";
import { barsOf, headingOf, outcomeOf, pathOf } from "../runs/run-row";
import { StateTag } from "../runs/state-tag";
import { FormProblem } from "../ui/form-problem";
import { Button, ButtonLink, Empty, Loading } from "../ui/parts";
import { useNow } from "../ui/use-now";
import { useTick } from "../ui/use-tick";
import { RunBars } from "../viz/score-bars";
import { Setup } from "./setup";

const SHOWN = 6;

export function RecentRuns() {
  const now = useNow(5000);
  const { data, problem, reload } = useGet<RunList>(`/api/runs?limit=${SHOWN}`, useTick(10_000));
  const all = data?.runs;
  return (
    <section className="sect" aria-label="Recent runs">
      <div className="secthead">
        <h2>Recent runs</h2>
        {data && data.total > 0 && (
          <span className="push">
            <ButtonLink to="/runs" look="ghost" size="small">
              {data.total > SHOWN ? `All ${count(data.total)} runs` : "All runs"}
            </ButtonLink>
          </span>
        )}
      </div>
      {problem && (
        <>
          <FormProblem problem={problem} />
          <Button size="small" onClick={reload}>
            Try again
          </Button>
        </>
      )}
      {!all && !problem && <Loading what="runs" />}
      {all?.length === 0 && (
        <>
          <Setup />
          <div className="runs">
            <Empty title="No runs yet">
              Try HLXI, a fictional company. With the model <code>demo</code> it is free.
            </Empty>
          </div>
        </>
      )}
      {all && all.length > 0 && (
        <div className="runs">
          {all.map((run) => (
            <RunRow key={run.run_id} run={run} now={now} />
          ))}
        </div>
      )}
    </section>
  );
}

function RunRow({ run, now }: { run: RunSummary; now: number }) {
  const { code, name } = headingOf(run);
  const { line, detail } = outcomeOf(run);
  const bars = barsOf(run);
  return (
    <Link className="run" to={pathOf(run)}>
      <div className="name">
        <span className="t">{code}</span>
        <div className="co" title={name}>
          {name}
        </div>
      </div>
      <div className="bw">{bars.length > 0 && <RunBars bars={bars} />}</div>
      <div className="out">
        <b title={line}>{line}</b>
        <span title={detail}>{detail}</span>
      </div>
      <div className="num r cost">{run.cost_micro_usd === null ? "" : usd(run.cost_micro_usd)}</div>
      <div className="muted r when">{ago(run.created_at, now)}</div>
      <div className="r state">
        <StateTag run={run} />
      </div>
    </Link>
  );
}
