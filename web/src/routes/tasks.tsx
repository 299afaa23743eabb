import { type FormEvent, useEffect, useId, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { asProblem, type Problem, post } from "../api/client";
import { useGet } from "../api/use-get";
import type { RunList, StartRunResponse } from "../gen/api";
import { ago, plain, usd } from "../model/format";
import { Button, Empty, Loading, Note, Segmented, Tag } from "../ui/parts";
import { useNow } from "../ui/use-now";

const ATTEMPTS = [1, 3, 5].map((value) => ({ value, name: String(value) }));

/** Starts a program run and lists earlier ones. */
export default function Tasks() {
  const navigate = useNavigate();
  const fieldId = useId();
  const now = useNow(10_000);
  const { data } = useGet<RunList>("/api/runs?limit=200", Math.floor(now / 10_000));
  const [params] = useSearchParams();
  const [task, setTask] = useState(() => params.get("task") ?? "");
  const [attempts, setAttempts] = useState(3);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Tasks · Moothall";
  }, []);
  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || task.trim() === "") return;
    setBusy(true);
    try {
      const body = { workflow: "reflexion", task: task.trim(), attempts };
      const { run_id } = await post<StartRunResponse>("/api/runs", body, { "idempotency-key": crypto.randomUUID() });
      navigate(`/runs/${run_id}`);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const runs = data?.runs.filter((run) => run.workflow !== "consult");
  return (
    <div className="res narrowpage fade">
      <h1 className="pagetitle">Run a program</h1>
      <p className="sub">
        A model writes a Python program for your task and runs it in a single-use sandbox. If it fails, a critique
        explains why and the model tries again.
      </p>
      <form className="panel taskform" onSubmit={start}>
        <label className="sr" htmlFor={fieldId}>
          Task
        </label>
        <textarea
          id={fieldId}
          rows={3}
          maxLength={4000}
          placeholder="Print the first ten primes, one per line"
          value={task}
          onChange={(event) => setTask(event.target.value)}
        />
        <div className="taskrow">
          <span className="lab">Attempts</span>
          <Segmented label="Attempts" options={ATTEMPTS} value={attempts} onChange={setAttempts} />
          <Button className="push" look="primary" type="submit" disabled={busy || task.trim() === ""}>
            {busy ? "Starting" : "Start"}
          </Button>
        </div>
      </form>
      {problem && (
        <div className="formproblem">
          <Note tone="bad" alert>
            <b>{problem.message}</b> {problem.hint}
          </Note>
        </div>
      )}
      <section className="sect" aria-label="Programs">
        <div className="secthead">
          <h2>Programs</h2>
        </div>
        {!runs && <Loading what="programs" />}
        {runs?.length === 0 && (
          <div className="runs">
            <Empty title="No programs yet">Write a task above, or run `moothall run "TASK"`.</Empty>
          </div>
        )}
        {runs && runs.length > 0 && (
          <div className="runs">
            {runs.map((run) => (
              <Link key={run.run_id} className="run task" to={`/runs/${run.run_id}`}>
                <div className="out">
                  <b>{plain(run.title)}</b>
                  <span>{run.model}</span>
                </div>
                <div className="mono r cost">{run.cost_micro_usd === null ? "" : usd(run.cost_micro_usd)}</div>
                <div className="muted r when">{ago(run.created_at, now)}</div>
                <div className="r state">
                  <Tag tone={run.verdict === "fail" ? "bad" : run.verdict === "needs-person" ? "warn" : undefined}>
                    {run.verdict ?? run.state}
                  </Tag>
                </div>
              </Link>
            ))}
          </div>
        )}
      </section>
    </div>
  );
}
