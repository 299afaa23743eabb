import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { asProblem, type Problem, post } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type { RunList, RunState, RunSummary } from "../gen/api";
import { useDelayed } from "../home/use-delayed";
import { ago, count, dayAndTime, plain, usd } from "../model/format";
import { againPath, headingOf, outcomeOf, pathOf } from "../runs/run-row";
import { StateTag } from "../runs/state-tag";
import { FormProblem } from "../ui/form-problem";
import { Icon } from "../ui/icon";
import { usePageTitle } from "../ui/page-title";
import { Button, ButtonLink, Empty, Loading } from "../ui/parts";
import { useAddress } from "../ui/use-address";
import { useNow } from "../ui/use-now";
import { useTick } from "../ui/use-tick";
import "../styles/runs.css";

const PAGE = 50;

const STATES: [RunState, string][] = [
  ["running", "Running"],
  ["paused", "Paused or needs you"],
  ["finished", "Finished"],
  ["failed", "Failed"],
  ["cancelled", "Stopped"],
];

/** All runs: search, filters, order, comparison and deletion. The address keeps what is shown. */
export default function Runs() {
  usePageTitle("Runs");
  const [params, changeAddress] = useAddress();
  const now = useNow(5000);
  const [text, setText] = useState(() => params.get("q") ?? "");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const q = useDelayed(text.trim(), 250);
  const page = Math.max(1, Math.floor(Number(params.get("page"))) || 1);
  const sort = params.get("sort") ?? "newest";
  const change = (name: string, value: string) => changeAddress({ page: null, [name]: value });
  const query = new URLSearchParams({ limit: String(PAGE), offset: String((page - 1) * PAGE), sort });
  if (q) query.set("q", q);
  for (const name of ["state", "workflow"]) {
    const value = params.get(name);
    if (value) query.set(name, value);
  }
  const { data, problem, reload } = useGet<RunList>(`/api/runs?${query}`, useTick(10_000));
  const isFiltered = q !== "" || params.has("state") || params.has("workflow");
  const rows = data?.runs ?? [];
  const picked = rows.filter((run) => chosen.has(run.run_id));
  return (
    <div className="res fade">
      <div className="runshead">
        <h1 className="pagetitle">Runs</h1>
        <ButtonLink to="/" look="primary">
          New run
        </ButtonLink>
      </div>
      <search className="filters">
        <label className="field">
          <span className="lab">Search</span>
          <input
            type="search"
            value={text}
            placeholder="Company, title, model or id"
            maxLength={200}
            onChange={(event) => {
              setText(event.target.value);
              change("q", event.target.value.trim());
            }}
          />
        </label>
        <label className="field">
          <span className="lab">Status</span>
          <select value={params.get("state") ?? ""} onChange={(event) => change("state", event.target.value)}>
            <option value="">All</option>
            {STATES.map(([state, name]) => (
              <option key={state} value={state}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label className="field">
          <span className="lab">Kind</span>
          <select value={params.get("workflow") ?? ""} onChange={(event) => change("workflow", event.target.value)}>
            <option value="">All</option>
            <option value="consult">Consultations</option>
            <option value="run">Programs</option>
          </select>
        </label>
        <output className="muted">{data && countWords(data.total)}</output>
      </search>
      <FormProblem problem={problem} />
      {picked.length > 0 && (
        <Selection
          picked={picked}
          onDone={() => {
            setChosen(new Set());
            reload();
          }}
        />
      )}
      {!data && !problem && <Loading what="runs" />}
      {data && rows.length === 0 && (
        <Empty title={isFiltered ? "No results" : "No runs yet"} action={<Link to="/">Start a run</Link>}>
          {isFiltered ? "No run matches the search and the filters." : "Runs appear here as soon as they start."}
        </Empty>
      )}
      {rows.length > 0 && (
        <table className="runtable">
          <caption className="sr">Runs</caption>
          <thead>
            <tr>
              <th className="pickcell">
                <span className="sr">Select</span>
              </th>
              <SortHead name="Company" order="title" sort={sort} onSort={(next) => change("sort", next)} />
              <th scope="col">Result</th>
              <th scope="col">Status</th>
              <SortHead name="Model" order="model" sort={sort} onSort={(next) => change("sort", next)} />
              <SortHead name="Cost" order="cost" sort={sort} onSort={(next) => change("sort", next)} right />
              <SortHead
                name="Started"
                order={sort === "newest" ? "oldest" : "newest"}
                sort={sort}
                onSort={(next) => change("sort", next === "newest" ? "" : next)}
                right
              />
              <th>
                <span className="sr">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((run) => (
              <Row
                key={run.run_id}
                run={run}
                now={now}
                chosen={chosen.has(run.run_id)}
                onChoose={(on) =>
                  setChosen((before) => {
                    const next = new Set(before);
                    if (on) next.add(run.run_id);
                    else next.delete(run.run_id);
                    return next;
                  })
                }
              />
            ))}
          </tbody>
        </table>
      )}
      {data && data.total > PAGE && (
        <nav className="pager" aria-label="Pages">
          <Button disabled={page <= 1} onClick={() => change("page", page > 2 ? String(page - 1) : "")}>
            Previous
          </Button>
          <span className="num">
            {count((page - 1) * PAGE + 1)}–{count(Math.min(page * PAGE, data.total))} of {count(data.total)}
          </span>
          <Button disabled={page * PAGE >= data.total} onClick={() => change("page", String(page + 1))}>
            Next
          </Button>
        </nav>
      )}
    </div>
  );
}

function countWords(total: number): string {
  return total === 1 ? "1 run" : `${count(total)} runs`;
}

const ORDER: Record<string, "ascending" | "descending"> = {
  title: "ascending",
  model: "ascending",
  cost: "descending",
  newest: "descending",
  oldest: "ascending",
};

/** A column that sorts the whole list, not only what is on this page. */
function SortHead({
  name,
  order,
  sort,
  onSort,
  right,
}: {
  name: string;
  order: string;
  sort: string;
  onSort: (order: string) => void;
  right?: boolean;
}) {
  const isTime = name === "Started";
  const isOn = isTime ? sort === "newest" || sort === "oldest" : sort === order;
  return (
    <th scope="col" className={right ? "right" : undefined} aria-sort={isOn ? ORDER[sort] : undefined}>
      <button type="button" onClick={() => onSort(isOn && !isTime ? "" : order)}>
        {name}
        <span aria-hidden="true">{isOn ? (ORDER[sort] === "ascending" ? " ↑" : " ↓") : ""}</span>
      </button>
    </th>
  );
}

function Row({
  run,
  now,
  chosen,
  onChoose,
}: {
  run: RunSummary;
  now: number;
  chosen: boolean;
  onChoose: (on: boolean) => void;
}) {
  const { code, name } = headingOf(run);
  const { line, detail } = outcomeOf(run);
  const again = againPath(run);
  const mayRun = useMay("run") !== false;
  return (
    <tr className={chosen ? "chosen" : undefined}>
      <td className="pickcell">
        <label>
          <input
            type="checkbox"
            checked={chosen}
            aria-label={`Select ${code} of ${dayAndTime(run.created_at)}`}
            onChange={(event) => onChoose(event.target.checked)}
          />
        </label>
      </td>
      <th scope="row">
        <Link to={pathOf(run)}>
          <span className="t">{code}</span>
          <span className="co" title={name}>
            {name}
          </span>
        </Link>
      </th>
      <td className="resultcell">
        <span className="clip" title={line}>
          {line}
        </span>
        <span className="muted clip" title={detail}>
          {detail}
        </span>
      </td>
      <td className="statecell">
        <StateTag run={run} />
      </td>
      <td className="modelcell">
        <span className="clip" title={plain(run.model)}>
          {plain(run.model)}
        </span>
      </td>
      <td className="right num costcell">{run.cost_micro_usd === null ? "" : usd(run.cost_micro_usd)}</td>
      <td className="right num whencell">
        <time dateTime={run.created_at} title={dayAndTime(run.created_at)}>
          {ago(run.created_at, now)}
        </time>
      </td>
      <td className="right againcell">
        {again && mayRun && (
          <Link className="btn sm ghost" to={again}>
            Run again<span className="sr"> {code}</span>
          </Link>
        )}
      </td>
    </tr>
  );
}

/** What can be done with the chosen runs. */
function Selection({ picked, onDone }: { picked: RunSummary[]; onDone: () => void }) {
  const navigate = useNavigate();
  const mayDelete = useMay("admin");
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [one, other] = picked;
  const canCompare = picked.length === 2 && picked.every((run) => run.workflow === "consult");
  const unfinished = picked.filter((run) => run.state === "running" || run.state === "paused").length;
  const why =
    mayDelete === false
      ? "Only an admin can delete runs."
      : unfinished > 0
        ? "Stop unfinished runs before you delete them."
        : undefined;
  const remove = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      for (const run of picked) await post(`/api/runs/${run.run_id}/delete`);
      onDone();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
    setSure(false);
  };
  return (
    <>
      <section className="selection panel" aria-label="Selected runs">
        <span>
          <b>{picked.length}</b> selected
        </span>
        <Button
          icon="compare"
          disabled={!canCompare}
          title={canCompare ? undefined : "Select two consultations to compare them."}
          onClick={() => {
            // The older run is the first.
            const [a, b] = [one, other].sort((x, y) => (x?.created_at ?? "").localeCompare(y?.created_at ?? ""));
            navigate(`/compare?a=${a?.run_id}&b=${b?.run_id}`);
          }}
        >
          Compare
        </Button>
        {sure ? (
          <>
            <Button look="danger" disabled={busy} onClick={remove}>
              {busy ? "Deleting…" : `Delete ${countWords(picked.length)} permanently`}
            </Button>
            <Button onClick={() => setSure(false)}>Keep</Button>
          </>
        ) : (
          <Button icon="close" disabled={why !== undefined} title={why} onClick={() => setSure(true)}>
            Delete
          </Button>
        )}
        {why && (
          <span className="muted">
            <Icon name="warn" /> {why}
          </span>
        )}
        <Button look="ghost" onClick={onDone}>
          Clear selection
        </Button>
      </section>
      <FormProblem problem={problem} />
    </>
  );
}
