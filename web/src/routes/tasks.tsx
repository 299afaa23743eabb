import { useEffect } from "react";
import { Link } from "react-router";
import { useGet } from "../api/use-get";
import type { RunList } from "../gen/api";
import { ago, plain, usd } from "../model/format";
import { StateTag } from "../runs/state-tag";
import { ProgramForm } from "../tasks/program-form";
import { Empty, Loading } from "../ui/parts";
import { useNow } from "../ui/use-now";
import { useTick } from "../ui/use-tick";

/** Starts a program run and lists earlier ones. */
export default function Tasks() {
  const now = useNow(10_000);
  const { data } = useGet<RunList>("/api/runs?limit=50&workflow=run", useTick(10_000));
  useEffect(() => {
    document.title = "Tasks · Moothall";
  }, []);
  const runs = data?.runs;
  return (
    <div className="res narrowpage fade">
      <h1 className="pagetitle">Generate and test a program</h1>
      <p className="sub">
        A model writes a Python program for your task and runs it in a single-use sandbox. If it fails, a critique
        explains why and the model tries again.
      </p>
      <ProgramForm />
      <section className="sect" aria-label="Programs">
        <div className="secthead">
          <h2>Programs</h2>
        </div>
        {!runs && <Loading what="programs" />}
        {runs?.length === 0 && (
          <div className="runs">
            <Empty title="No programs yet">
              Write a task above, or run <code>moothall run "TASK"</code>.
            </Empty>
          </div>
        )}
        {runs && runs.length > 0 && (
          <div className="runs">
            {runs.map((run) => (
              <Link key={run.run_id} className="run task" to={`/runs/${run.run_id}`}>
                <div className="out">
                  <b title={plain(run.title)}>{plain(run.title)}</b>
                  <span title={run.model}>{run.model}</span>
                </div>
                <div className="num r cost">{run.cost_micro_usd === null ? "" : usd(run.cost_micro_usd)}</div>
                <div className="muted r when">{ago(run.created_at, now)}</div>
                <div className="r state">
                  <StateTag run={run} />
                </div>
              </Link>
            ))}
          </div>
        )}
      </section>
    </div>
  );
}
