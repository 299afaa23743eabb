import clsx from "clsx";
import { memo, useState } from "react";
import type { ConsultView, MoveView, RunView } from "../gen/run";
import { plain } from "../model/format";
import {
  currentRound,
  degradedWords,
  mostPerSeat,
  moveState,
  progressWords,
  seats,
  stripOf,
  stripWords,
  sumsOf,
} from "../model/select";
import { Icon } from "../ui/icon";
import { Empty } from "../ui/parts";
import { HeatStrip } from "../viz/heat-strip";
import { ScoreBars } from "../viz/score-bars";
import type { Place } from "./place";

/** All debates, one lane each. Lanes keep their order while a run is active. */
export function Lanes({ view, consult, place }: { view: RunView; consult: ConsultView; place: Place }) {
  const [attention, setAttention] = useState(false);
  const ids = seats(view);
  const needs = consult.moves.filter((one) => one.held || (one.scored?.degraded.length ?? 0) > 0);
  const shown = attention && needs.length > 0 ? needs : consult.moves;
  if (consult.moves.length === 0)
    return (
      <div className="panel">
        <Empty title="No moves yet">Debates start when all analysts have proposed their moves.</Empty>
      </div>
    );
  const outOf = consult.moves.find((one) => one.scored)?.scored?.out_of ?? ids.length * 40;
  return (
    <div className="panel lanes fade">
      <div className="lhd">
        <span />
        <span>
          Move
          {needs.length > 0 && (
            <button type="button" className="filter" aria-pressed={attention} onClick={() => setAttention(!attention)}>
              {needs.length} need attention
            </button>
          )}
        </span>
        <span className="rn" aria-hidden="true" style={{ gridTemplateColumns: `repeat(${consult.rounds}, 1fr)` }}>
          {Array.from({ length: consult.rounds }, (_, i) => (
            <span key={i}>{i + 1}</span>
          ))}
        </span>
        <span className="right">Score of {outOf}</span>
      </div>
      <ol>
        {shown.map((one) => (
          <Lane
            key={one.move_id}
            one={one}
            state={moveState(one, view)}
            view={view}
            rounds={consult.rounds}
            ids={ids.join(" ")}
            current={place.move === one.move_id}
            onOpen={place.go}
          />
        ))}
      </ol>
    </div>
  );
}

interface LaneProps {
  one: MoveView;
  state: ReturnType<typeof moveState>;
  view: RunView;
  rounds: number;
  ids: string;
  current: boolean;
  onOpen: Place["go"];
}

/** Renders only when its own move changed. */
const Lane = memo(
  function Lane({ one, state, view, rounds, ids: joined, current, onOpen }: LaneProps) {
    const ids = joined.split(" ");
    const cells = stripOf(one, view, rounds, ids);
    const title = plain(one.title ?? "being written");
    return (
      <li>
        <button
          type="button"
          className={clsx("lane", (state === "waiting" || state === "vetoed") && "q")}
          data-move={one.move_id}
          aria-current={current}
          onClick={() => onOpen({ move: one.move_id, layer: "3" })}
        >
          <span className="id">{one.move_id}</span>
          <span className="ti" title={title}>
            {title}
          </span>
          <HeatStrip rounds={cells} />
          <span className="sr">{stripWords(cells)}.</span>
          <span className="st">
            <LaneState one={one} state={state} ids={ids} rounds={rounds} />
          </span>
        </button>
      </li>
    );
  },
  (before, after) =>
    before.one === after.one &&
    before.state === after.state &&
    before.rounds === after.rounds &&
    before.ids === after.ids &&
    before.current === after.current &&
    before.onOpen === after.onOpen,
);

function LaneState({
  one,
  state,
  ids,
  rounds,
}: {
  one: MoveView;
  state: LaneProps["state"];
  ids: string[];
  rounds: number;
}) {
  if (one.scored) {
    const trouble = one.scored.degraded.map(degradedWords);
    return (
      <>
        {one.held && (
          <span className="warnmark" title="Held back by automatic checks">
            <Icon name="person" />
            <span className="sr">held back</span>
          </span>
        )}
        {trouble.length > 0 && (
          <span className="warnmark" title={trouble.join("; ")}>
            <Icon name="warn" />
            <span className="sr">{trouble.join("; ")}</span>
          </span>
        )}
        <ScoreBars sums={sumsOf(one, ids)} max={mostPerSeat(one, ids)} />
        <span className="sc">{one.scored.score ?? "Not scored"}</span>
      </>
    );
  }
  if (state === "live") {
    const words = progressWords(one, ids, rounds);
    return (
      <>
        <span className="only-w ellip" title={words}>
          {words}
        </span>
        <span className="only-n mono">R{Math.min(currentRound(one, ids), rounds)}</span>
      </>
    );
  }
  if (state === "stopped") return <span className="muted">stopped in round {one.rounds.at(-1)?.round}</span>;
  return <span className="muted">{state === "vetoed" ? "vetoed" : "waiting"}</span>;
}
