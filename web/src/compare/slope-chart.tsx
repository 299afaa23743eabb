// Ranks of the moves in two runs, joined by lines: what rose, what fell, what only one of them has.
import type { MoveMatch } from "../gen/api";
import { plain } from "../model/format";

const WIDTH = 720;
const ROW = 26;
const TOP = 34;

export function SlopeChart({ moves, names }: { moves: readonly MoveMatch[]; names: readonly [string, string] }) {
  const ranks = moves.flatMap(({ before, after }) => [before?.rank ?? 0, after?.rank ?? 0]);
  const rows = Math.max(1, ...ranks);
  const height = TOP + rows * ROW + 8;
  const y = (rank: number) => TOP + (rank - 0.5) * ROW;
  const [left, right] = [WIDTH * 0.34, WIDTH * 0.66];
  return (
    <svg
      className="slope"
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="img"
      aria-label={`Ranks of ${moves.length} moves in both runs. The table below has the same numbers.`}
    >
      <g className="svgsans">
        <text x={left} y="16" textAnchor="end">
          {names[0]}
        </text>
        <text x={right} y="16">
          {names[1]}
        </text>
      </g>
      {moves.map(({ before, after }, i) => {
        const [from, to] = [before?.rank ?? null, after?.rank ?? null];
        const change = from !== null && to !== null ? from - to : 0;
        const look = change > 0 ? "up" : change < 0 ? "down" : "same";
        return (
          <g key={i} className={`slopeline ${look}`}>
            <title>{words({ before, after })}</title>
            {from !== null && to !== null && <path d={`M${left + 8} ${y(from)}L${right - 8} ${y(to)}`} />}
            {from !== null && (
              <>
                <circle cx={left + 8} cy={y(from)} r={before?.recommended ? 5 : 3.5} />
                <text x={left - 4} y={y(from) + 4} textAnchor="end">
                  {label(before?.title)} {from}
                </text>
              </>
            )}
            {to !== null && (
              <>
                <circle cx={right - 8} cy={y(to)} r={after?.recommended ? 5 : 3.5} />
                <text x={right + 4} y={y(to) + 4}>
                  {to} {label(after?.title)}
                </text>
              </>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** The whole titles, which the labels may cut, with both ranks. */
function words({ before, after }: MoveMatch): string {
  const titles = new Set([before, after].flatMap((one) => (one ? [plain(one.title)] : [])));
  return `${[...titles].join(" / ")}: ${before?.rank ?? "–"} → ${after?.rank ?? "–"}`;
}

function label(title: string | undefined): string {
  const text = plain(title ?? "");
  return text.length > 34 ? `${text.slice(0, 33)}…` : text;
}
