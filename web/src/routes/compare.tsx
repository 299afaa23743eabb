import { useEffect, useState } from "react";
import { Link, useNavigate } from "react-router";
import { useGet } from "../api/use-get";
import type { RunList } from "../gen/api";
import { dayAndTime, plain } from "../model/format";
import { Button, Crumb, Empty, Loading } from "../ui/parts";

/** Selects two consultations of one company; the results page compares them. */
export default function Compare() {
  const navigate = useNavigate();
  const { data } = useGet<RunList>("/api/runs?limit=200");
  const [one, setOne] = useState("");
  const [other, setOther] = useState("");
  useEffect(() => {
    document.title = "Compare two runs · Moothall";
  }, []);
  if (!data) return <Loading what="runs" />;
  const runs = data.runs.filter(
    (run) => run.workflow === "consult" && (run.state === "finished" || run.verdict !== null),
  );
  const ticker = (title: string) => title.split(" ")[0] ?? "";
  const first = runs.find((run) => run.run_id === one) ?? runs[0];
  const fits = runs.filter((run) => run.run_id !== first?.run_id && first && ticker(run.title) === ticker(first.title));
  const second = fits.find((run) => run.run_id === other) ?? fits[0];
  return (
    <div className="res narrowpage fade">
      <Crumb>
        <span>Compare</span>
      </Crumb>
      <h1 className="pagetitle">Compare two runs</h1>
      {runs.length < 2 ? (
        <Empty title="Nothing to compare yet" action={<Link to="/">Start a run</Link>}>
          Finish two consultations of the same company to compare them.
        </Empty>
      ) : (
        <form
          className="panel pick"
          onSubmit={(event) => {
            event.preventDefault();
            if (first && second) navigate(`/runs/${first.run_id}/results?vs=${second.run_id}`);
          }}
        >
          <label>
            <span className="lab">Show</span>
            <select value={first?.run_id ?? ""} onChange={(event) => setOne(event.target.value)}>
              {runs.map((run) => (
                <option key={run.run_id} value={run.run_id}>
                  {plain(run.title)}, {dayAndTime(run.created_at)}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span className="lab">against</span>
            <select
              value={second?.run_id ?? ""}
              disabled={fits.length === 0}
              onChange={(event) => setOther(event.target.value)}
            >
              {fits.length === 0 && <option value="">no other run about this company</option>}
              {fits.map((run) => (
                <option key={run.run_id} value={run.run_id}>
                  {plain(run.title)}, {dayAndTime(run.created_at)}
                </option>
              ))}
            </select>
          </label>
          <Button type="submit" look="primary" icon="compare" disabled={!second}>
            Compare
          </Button>
        </form>
      )}
    </div>
  );
}
