import clsx from "clsx";
import { Link } from "react-router";
import type { MoveView, RunView } from "../gen/run";
import { plain } from "../model/format";
import { mostPerSeat, OBJECTION, seats, sumsOf } from "../model/select";
import { seatName, shortName } from "../run/people";
import { Icon } from "../ui/icon";
import { seatShape } from "../ui/mark";
import { Tag } from "../ui/parts";
import { RangePlot, Shape } from "../viz/range-plot";
import { Delta } from "./delta";

/** All moves that are not recommended, one line each. */
export function OtherMoves({
  view,
  moves,
  from,
  hasPanel,
  before,
}: {
  view: RunView;
  moves: readonly MoveView[];
  from: number;
  /** Then these are scores of the defence, which order nothing. */
  hasPanel: boolean;
  before: ((one: MoveView) => number | undefined) | undefined;
}) {
  const ids = seats(view);
  const most = moves[0] ? mostPerSeat(moves[0], ids) : 40;
  return (
    <section className="panel ot" aria-label="The other moves">
      <div className="cap">
        <h2>The other {moves.length}</h2>
        <span className="muted">{hasPanel ? "by number, with the scores of their defence" : "by rank"}</span>
        <span className="key push">
          {view.about.do_nothing && (
            <span className="seatkey">
              <svg width="12" height="12" aria-hidden="true">
                <path className="nothingmark" d="M6 0V12" />
              </svg>
              doing nothing
            </span>
          )}
          {ids.map((id, seat) => (
            <span key={id} className="seatkey">
              <svg width="12" height="12" aria-hidden="true">
                <Shape shape={seatShape(seat)} x={6} y={6} />
              </svg>
              {shortName(view, id)}
            </span>
          ))}
        </span>
      </div>
      <div className="orow h" aria-hidden="true">
        <span />
        <span>Move</span>
        <span className="right">of {moves[0]?.scored?.out_of ?? 120}</span>
        <span>Each judge, of {most}</span>
        <span className="right">Range</span>
        <span className="right">Objection</span>
      </div>
      <ol>
        {moves.map((one, i) => (
          <Other
            key={one.move_id}
            view={view}
            one={one}
            rank={hasPanel ? undefined : from + i + 1}
            ids={ids}
            most={most}
            before={before?.(one)}
          />
        ))}
      </ol>
    </section>
  );
}

function Other({
  view,
  one,
  rank,
  ids,
  most,
  before,
}: {
  view: RunView;
  one: MoveView;
  rank: number | undefined;
  ids: string[];
  most: number;
  before: number | undefined;
}) {
  const { scored } = one;
  if (!scored) return null;
  const sums = sumsOf(one, ids);
  const nothing = view.about.do_nothing;
  const objection = scored.key_objection;
  const state = objection ? OBJECTION[objection.state] : undefined;
  const title = plain(one.title ?? "");
  return (
    <li id={one.move_id}>
      <Link className="orow" to={`/runs/${view.about.run_id}?layer=3&move=${one.move_id}`}>
        <span className="rk">{rank}</span>
        <span className="ti" title={`${one.move_id} ${title}`}>
          <span className="mono">{one.move_id}</span>
          {title}
        </span>
        <span className="sc">
          {(scored.degraded.length > 0 || one.held) && (
            <span className="warnmark">
              <Icon name={one.held ? "person" : "warn"} />
              <span className="sr">{one.held ? "held back, " : "not complete, "}</span>
            </span>
          )}
          {scored.score ?? "Not scored"}
          {scored.score !== null && <Delta now={scored.score} before={before} />}
        </span>
        <span className="rg">
          <RangePlot
            judges={ids.map((id, seat) => ({ name: seatName(view, id), value: sums[seat] ?? 0 }))}
            max={most}
            width={214}
            nothing={nothing && nothing.score / Math.max(1, ids.length)}
          />
        </span>
        <span className={clsx("sp", scored.spread >= 6 && "hi")}>{scored.spread}</span>
        <span className="ob">{state ? <Tag tone={state.tone}>{state.short}</Tag> : <Tag tone="good">None</Tag>}</span>
      </Link>
    </li>
  );
}
