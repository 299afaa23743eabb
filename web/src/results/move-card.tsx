import clsx from "clsx";
import { Link } from "react-router";
import type { ConsultView, MoveView, Objection, RunView } from "../gen/run";
import { capital, plain } from "../model/format";
import { sumOf } from "../model/reduce";
import { metricName, metricsOf, mostPerSeat, OBJECTION, personaOf, seats, sumsOf } from "../model/select";
import { seatName, shortName } from "../run/people";
import { AgentWords } from "../ui/agent-text";
import { Cite } from "../ui/cite";
import { Icon } from "../ui/icon";
import { Mark, seatShape } from "../ui/mark";
import { Tag } from "../ui/parts";
import { RangePlot } from "../viz/range-plot";
import { Delta } from "./delta";

const PLACES = ["First", "Second", "Third", "Fourth", "Fifth"];

/** The order within a tier means nothing; with too few moves for tiers there is none. */
function placeOf({ verdict }: ConsultView, one: MoveView, rank: number): string {
  if (!verdict) return PLACES[rank] ?? `${rank + 1}`;
  const tier = verdict.tiers.estimates.find((found) => found.move_id === one.move_id)?.tier;
  return tier ? capital(tier) : "Recommended";
}

/** A recommended move: score, scores by decision maker, strongest objection and evidence. */
export function MoveCard({
  view,
  consult,
  one,
  rank,
  final,
  before,
}: {
  view: RunView;
  consult: ConsultView;
  one: MoveView;
  rank: number;
  final: boolean;
  before: number | undefined;
}) {
  const { scored } = one;
  if (!scored) return null;
  const ids = seats(view);
  const sums = sumsOf(one, ids);
  const most = mostPerSeat(one, ids);
  const run = view.about.run_id;
  const nothing = view.about.do_nothing;
  return (
    <article className="panel card" id={one.move_id}>
      <div className="hd">
        <span className="rk">
          <b>{final ? placeOf(consult, one, rank) : "So far"}</b> {one.move_id} from {personaOf(consult, one.analyst)}
        </span>
        <h2>{plain(one.title ?? one.move_id)}</h2>
        <div className="big">
          {scored.score ?? "Not scored"}
          {scored.score !== null && (
            <small>
              of {scored.out_of}
              {consult.verdict && " by its defence"}
              <Delta now={scored.score} before={before} />
            </small>
          )}
        </div>
      </div>
      <div className="t40" style={{ gridTemplateColumns: `repeat(${ids.length}, 1fr)` }}>
        {ids.map((id, seat) => (
          <div key={id} className={seatShape(seat)}>
            <div className="b">
              <i style={{ width: `${((sums[seat] ?? 0) / most) * 100}%` }} />
              {nothing && <em style={{ left: `${(sumOf(nothing.breakdown[id] ?? {}) / most) * 100}%` }} />}
            </div>
            <div className="l">
              <Mark shape={seatShape(seat)} />
              <span>{shortName(view, id)}</span>
              <b>{sums[seat]}</b>
            </div>
          </div>
        ))}
      </div>
      <div className="mx">
        {metricsOf(view).map((metric) => {
          const values = ids.map((id) => scored.breakdown[id]?.[metric] ?? 0);
          return (
            <div key={metric} className="mrow">
              <span>{metricName(view, metric)}</span>
              <RangePlot
                judges={ids.map((id, i) => ({ name: seatName(view, id), value: values[i] ?? 0 }))}
                max={10}
                nothing={nothing && mean(ids.map((id) => nothing.breakdown[id]?.[metric] ?? 0))}
              />
              <span className="num">
                {values.reduce((sum, value) => sum + value, 0)} / {values.length * 10}
              </span>
            </div>
          );
        })}
        <div className="mrow">
          <span>Score range</span>
          <span>{split(view, one, ids)}</span>
          <span className={clsx("num", scored.spread >= 6 && "hi")}>{scored.spread} pts</span>
        </div>
      </div>
      {scored.key_objection ? (
        <ObjectionBox view={view} objection={scored.key_objection} ids={ids} moveId={one.move_id} />
      ) : (
        <div className="obj">
          <div className="w">
            <Mark shape="C" />
            No open objection
            <Tag tone="good">Answered</Tag>
          </div>
        </div>
      )}
      <EvidenceList objection={scored.key_objection} check={one.check} />
      <div className="ft">
        <Link to={`/runs/${run}?layer=3&move=${one.move_id}`}>Read the debate</Link>
        <Link to={`/runs/${run}/results?doc=${one.move_id}.md`} preventScrollReset>
          Full proposal
        </Link>
      </div>
    </article>
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** The metric with the largest disagreement. */
function split(view: RunView, one: MoveView, ids: readonly string[]): string {
  if ((one.scored?.spread ?? 0) <= 3) return "agreed";
  const gaps = metricsOf(view).map((metric) => {
    const values = ids.map((id) => one.scored?.breakdown[id]?.[metric] ?? 0);
    return { metric, gap: Math.max(...values) - Math.min(...values) };
  });
  const widest = gaps.reduce((most, next) => (next.gap > most.gap ? next : most), { metric: "", gap: 0 });
  return widest.gap > 0 ? `split on ${metricName(view, widest.metric).toLowerCase()}` : "agreed";
}

function ObjectionBox({
  view,
  objection,
  ids,
  moveId,
}: {
  view: RunView;
  objection: Objection;
  ids: readonly string[];
  moveId: string;
}) {
  const state = OBJECTION[objection.state];
  const open = objection.open_in ?? [];
  const first = open[0] ?? ids[0] ?? "D1";
  return (
    <div className="obj">
      <div className="w">
        <Mark shape="C" />
        Strongest objection
        <Tag tone={state.tone}>{state.name}</Tag>
      </div>
      <p className="agent">
        <AgentWords text={objection.text} />
      </p>
      <div className="ans">
        {open.length > 0 ? <Mark shape={seatShape(Math.max(0, ids.indexOf(first)))} /> : <Icon name="check" />}
        <span>
          {open.length > 0
            ? `${objection.severity === "fatal" ? "Fatal" : objection.severity === "major" ? "Major" : "Minor"}, and ${objection.state === "conceded" ? "conceded by" : "open with"} ${open.map((id) => shortName(view, id)).join(", ")}. `
            : "Settled in every thread. "}
          <Link to={`/runs/${view.about.run_id}?layer=3&move=${moveId}&thread=${first}`}>
            Raised in round {objection.round}
          </Link>
        </span>
      </div>
    </div>
  );
}

function EvidenceList({ objection, check }: { objection: Objection | null; check: MoveView["check"] }) {
  const cited = objection?.evidence ?? [];
  return (
    <div className="ev">
      <span className="lab">Evidence in dispute</span>
      <p className="chips">
        {cited.map((id) => (
          <Cite key={id} id={id} />
        ))}
        {cited.length === 0 && <span className="muted">none cited</span>}
      </p>
      {check && (
        <p className="muted">
          {check.supported} of {check.numbers} numbers of the proposal are supported by filings or marked as
          assumptions.
        </p>
      )}
    </div>
  );
}
