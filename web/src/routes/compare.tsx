import { Link, useSearchParams } from "react-router";
import { useGet } from "../api/use-get";
import { Comparison } from "../compare/comparison";
import type { RunList, RunSummary } from "../gen/api";
import { dayAndTime, plain } from "../model/format";
import { usePageTitle } from "../ui/page-title";
import { Crumb, Empty, Loading } from "../ui/parts";
import "../styles/compare.css";

/** Compares two consultations. The address names both, so it can be shared. */
export default function Compare() {
  usePageTitle("Compare two runs");
  const [params, setParams] = useSearchParams();
  const { data } = useGet<RunList>("/api/runs?limit=200&workflow=consult&state=finished");
  if (!data) return <Loading what="runs" />;
  const runs = data.runs;
  const ticker = (run: RunSummary | undefined) => run?.consult?.ticker;
  // Without an address: the newest run, and the one before it about the same company.
  const newest = runs[0];
  const b = params.get("b") ?? newest?.run_id ?? "";
  const company = ticker(runs.find((run) => run.run_id === b));
  const earlier = runs.filter((run) => run.run_id !== b && ticker(run) === company);
  const a = params.get("a") ?? earlier[0]?.run_id ?? "";
  const choose = (name: "a" | "b", id: string) =>
    setParams({ a, b, [name]: id }, { replace: true, preventScrollReset: true });
  const option = (run: RunSummary) => (
    <option key={run.run_id} value={run.run_id}>
      {plain(run.title)}, {dayAndTime(run.created_at)}
    </option>
  );
  const unknown = (id: string) => id !== "" && !runs.some((run) => run.run_id === id);
  return (
    <div className="res fade">
      <Crumb>
        <span>Compare</span>
      </Crumb>
      <h1 className="pagetitle">Compare two runs</h1>
      {runs.length < 2 && !(params.has("a") && params.has("b")) ? (
        <Empty title="Nothing to compare yet" action={<Link to="/">Start a run</Link>}>
          Finish two consultations of the same company to compare them.
        </Empty>
      ) : (
        <>
          <div className="panel pick pair">
            <label>
              <span className="lab">Before</span>
              <select value={a} onChange={(event) => choose("a", event.target.value)}>
                {a === "" && <option value="">no other run about this company</option>}
                {unknown(a) && <option value={a}>{a}</option>}
                {runs.filter((run) => run.run_id !== b).map(option)}
              </select>
            </label>
            <label>
              <span className="lab">After</span>
              <select value={b} onChange={(event) => choose("b", event.target.value)}>
                {unknown(b) && <option value={b}>{b}</option>}
                {runs.filter((run) => run.run_id !== a).map(option)}
              </select>
            </label>
          </div>
          {a !== "" && b !== "" && <Comparison key={`${a} ${b}`} a={a} b={b} />}
        </>
      )}
    </div>
  );
}
