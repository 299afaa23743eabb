// A run as lines: one ticker, documents, inferences, analysts, moves through their rounds, three results. Hidden from screen
// readers: the stages have the same information as text.
import { useWidth } from "../ui/use-width";

export interface Strand {
  id: string;
  /** The position of the analyst that proposed it. */
  analyst: number;
  /** Completed rounds. */
  passed: number;
  /** Rounds in which most decision makers conceded. */
  conceded: ReadonlySet<number>;
  state: "waiting" | "live" | "done";
  /** 0 is the best of the recommended; absent for all others. */
  rank?: number | undefined;
}

interface Props {
  strands: readonly Strand[];
  analysts: number;
  gates: number;
  height: number;
  /** The number of stages that have started. */
  reached: number;
  /** The selected stage. */
  layer: number | undefined;
  /** All moves are ranked. */
  ranked: boolean;
  /** Whether somebody works on the run now. */
  active: boolean;
}

/** Where the five stages end, as parts of the width; the stages below have the same columns. */
export const ZONES = [0, 0.14, 0.27, 0.42, 0.88, 1] as const;

const X = { ticker: 0.03, gathered: 0.1, inferred: 0.24, analyzed: 0.37, first: 0.475, last: 0.855, end: 0.945 };

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const half = ((x1 + x2) / 2).toFixed(1);
  return `M${x1.toFixed(1)} ${y1.toFixed(1)}C${half} ${y1.toFixed(1)} ${half} ${y2.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`;
}

function spread(count: number, height: number, pad: number): number[] {
  if (count === 1) return [height / 2];
  return Array.from({ length: count }, (_, i) => pad + ((height - 2 * pad) * i) / (count - 1));
}

export function Strands({ strands, analysts, gates, height, reached, layer, ranked, active }: Props) {
  const [ref, width] = useWidth<HTMLDivElement>(844);
  const pad = 13;
  const mid = height / 2;
  const x = (part: number) => part * width;
  const pair = [mid - height * 0.17, mid + height * 0.17];
  const seats = Array.from(
    { length: analysts },
    (_, i) => pad + ((height - 2 * pad) * (i + 0.5)) / Math.max(1, analysts),
  );
  const rows = spread(Math.max(1, strands.length), height, pad);
  const step = (x(X.last) - x(X.first)) / gates;
  const gate = (i: number) => x(X.first) + step * (i + 0.5);
  const zone = layer === undefined ? undefined : ([ZONES[layer], ZONES[layer + 1]] as const);
  const ink = (from: number) => (reached > from ? "var(--ink)" : "var(--line2)");
  return (
    <div ref={ref} className="strands">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true" fill="none">
        {zone && (
          <rect
            x={(zone[0] ?? 0) * width}
            y="0"
            width={((zone[1] ?? 1) - (zone[0] ?? 0)) * width}
            height={height}
            fill="var(--sunk)"
          />
        )}
        <g stroke={ink(0)} strokeWidth="1.15">
          {pair.map((y) => (
            <path key={y} d={curve(x(X.ticker), mid, x(X.gathered), y)} />
          ))}
        </g>
        <g stroke={ink(1)} strokeWidth="1.15">
          {pair.map((y) => (
            <path key={y} d={`M${x(X.gathered)} ${y}H${x(X.inferred)}`} />
          ))}
        </g>
        <g stroke={ink(2)} strokeWidth="1.15" opacity={reached > 2 ? 0.45 : 1}>
          {seats.flatMap((y) =>
            pair.map((from) => <path key={`${y}-${from}`} d={curve(x(X.inferred), from, x(X.analyzed), y)} />),
          )}
        </g>
        <g stroke="var(--line2)">
          {Array.from({ length: gates }, (_, i) => (
            <path key={i} d={`M${gate(i)} ${pad - 7}V${height - pad + 7}`} />
          ))}
        </g>
        {strands.map((strand, i) => (
          <StrandLine
            key={strand.id}
            strand={strand}
            y={rows[i] ?? mid}
            from={seats[strand.analyst] ?? mid}
            x={{ start: x(X.analyzed), first: x(X.first), last: x(X.last), end: x(X.end) }}
            gates={gates}
            gate={gate}
            step={step}
            mid={mid}
            ranked={ranked}
          />
        ))}
        <g fill="var(--panel)" strokeWidth="1.3">
          <circle cx={x(X.ticker)} cy={mid} r="4.5" stroke="var(--ink)" />
          {pair.map((y) => (
            <g key={y}>
              <circle cx={x(X.gathered)} cy={y} r="3" stroke={ink(0)} />
              <circle cx={x(X.inferred)} cy={y} r="3" stroke={ink(1)} />
            </g>
          ))}
          {seats.map((y) => (
            <circle key={y} cx={x(X.analyzed)} cy={y} r="3" stroke={ink(2)} />
          ))}
          {!ranked &&
            [-1, 0, 1].map((k) => <circle key={k} cx={x(X.end)} cy={mid + k * 15} r="3.2" stroke="var(--line2)" />)}
        </g>
        {active && reached < 4 && reached > 0 && !ranked && (
          <LiveDots reached={reached} x={x} pair={pair} seats={seats} mid={mid} />
        )}
      </svg>
    </div>
  );
}

/** The activity in the stages before the debates. */
function LiveDots({
  reached,
  x,
  pair,
  seats,
  mid,
}: {
  reached: number;
  x: (part: number) => number;
  pair: number[];
  seats: number[];
  mid: number;
}) {
  const at = { 1: [X.gathered, pair], 2: [X.inferred, pair], 3: [X.analyzed, seats] }[reached] as
    | [number, number[]]
    | undefined;
  const [part, ys] = at ?? [X.ticker, [mid]];
  return (
    <g className="nowdot">
      {ys.map((y) => (
        <circle key={y} cx={x(part)} cy={y} r="3.8" fill="var(--live)" stroke="var(--liveline)" strokeWidth="1.2" />
      ))}
    </g>
  );
}

function StrandLine({
  strand,
  y,
  from,
  x,
  gates,
  gate,
  step,
  mid,
  ranked,
}: {
  strand: Strand;
  y: number;
  from: number;
  x: { start: number; first: number; last: number; end: number };
  gates: number;
  gate: (i: number) => number;
  step: number;
  mid: number;
  ranked: boolean;
}) {
  const { passed, rank, state } = strand;
  const won = ranked && rank !== undefined;
  const reach = passed >= gates ? x.last : passed > 0 ? gate(passed - 1) + step / 2 : x.first;
  const weight = won ? 2.2 : 1.15;
  return (
    <g>
      <path d={curve(x.start, from, x.first, y)} stroke="var(--ink)" strokeWidth={weight} opacity={won ? 1 : 0.6} />
      {reach < x.last && <path d={`M${reach} ${y}H${x.last}`} stroke="var(--line2)" />}
      {passed > 0 && (
        <path
          d={`M${x.first} ${y}H${reach}`}
          stroke="var(--ink)"
          strokeWidth={weight}
          opacity={ranked && !won ? 0.55 : 1}
        />
      )}
      {state === "live" && (
        <path
          className="flow"
          d={`M${x.first} ${y}H${Math.max(reach, x.first + step / 2)}`}
          stroke="var(--live)"
          strokeWidth="1.2"
        />
      )}
      {Array.from({ length: Math.min(passed, gates) }, (_, i) =>
        strand.conceded.has(i) ? (
          <circle key={i} cx={gate(i)} cy={y} r="1.9" fill="var(--panel)" stroke="var(--ink)" />
        ) : (
          <circle key={i} cx={gate(i)} cy={y} r="1.7" fill="var(--ink)" />
        ),
      )}
      {state === "live" && (
        <circle
          className="nowdot"
          cx={Math.max(reach, x.first + 3)}
          cy={y}
          r="3.4"
          fill="var(--live)"
          stroke="var(--liveline)"
          strokeWidth="1.2"
        />
      )}
      {state === "done" && !ranked && (
        <path d={curve(x.last, y, x.end, mid)} stroke="var(--ink)" strokeWidth="1.15" opacity=".3" />
      )}
      {ranked && !won && <path d={`M${x.last + 5} ${y - 3}v6`} stroke="var(--ink3)" strokeWidth="1.5" />}
      {won && (
        <>
          <path d={curve(x.last, y, x.end, mid + (rank - 1) * 15)} stroke="var(--ink)" strokeWidth="2.2" />
          <circle cx={x.end} cy={mid + (rank - 1) * 15} r="4" fill="var(--ink)" />
        </>
      )}
    </g>
  );
}
