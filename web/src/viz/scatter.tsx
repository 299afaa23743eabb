// Score against disagreement: which moves are strong and agreed on, and which divide the committee.

export interface Point {
  id: string;
  score: number;
  spread: number;
  top: boolean;
}

const WIDTH = 372;
const HEIGHT = 268;

/** Round numbers around the values, at most six of them. */
function ticks(low: number, high: number): number[] {
  const span = Math.max(1, high - low);
  const step = [1, 2, 3, 4, 5, 10, 20, 25, 50].find((size) => span / size <= 5) ?? 100;
  const first = Math.floor(low / step) * step;
  const count = Math.ceil((high - first) / step) + 1;
  return Array.from({ length: count }, (_, i) => first + i * step);
}

export function Scatter({
  points,
  outOf,
  nothing,
}: {
  points: readonly Point[];
  outOf: number;
  /** The score of doing nothing, drawn as a line. */
  nothing: number | undefined;
}) {
  const scores = [...points.map((point) => point.score), ...(nothing === undefined ? [] : [nothing])];
  const yTicks = ticks(Math.min(...scores) - 2, Math.min(outOf, Math.max(...scores) + 2));
  const xTicks = ticks(0, Math.max(4, ...points.map((point) => point.spread)));
  const [low, high] = [yTicks[0] ?? 0, yTicks.at(-1) ?? outOf];
  const widest = xTicks.at(-1) ?? 12;
  const x = (spread: number) => 46 + ((WIDTH - 76) * spread) / widest;
  const y = (score: number) => HEIGHT - 44 - ((HEIGHT - 92) * (score - low)) / Math.max(1, high - low);
  const labelled = labels(points, x, y);
  const top = [...points].filter((point) => point.top);
  const said = top.map((point) => `${point.id} ${point.score} points, score range ${point.spread}`).join("; ");
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`Score against disagreement of ${points.length} moves. ${said}${nothing === undefined ? "" : `; doing nothing ${nothing} points`}`}
    >
      <rect
        x={x(0) - 10}
        y="10"
        width={x(widest / 3) - x(0) + 10}
        height={y((low + 2 * high) / 3) - 10}
        fill="var(--sunk)"
        rx="4"
      />
      <g className="svgsans">
        <text x={x(0) - 4} y="24">
          strong, agreed
        </text>
        <text x={WIDTH - 14} y="24" textAnchor="end">
          strong, contested
        </text>
        <text x={(WIDTH + 30) / 2} y={HEIGHT - 4} textAnchor="middle">
          points between highest and lowest judge
        </text>
      </g>
      <g className="svgnum">
        {yTicks.map((tick) => (
          <g key={tick}>
            <path d={`M${x(0) - 10} ${y(tick)}H${WIDTH - 12}`} stroke="var(--line)" />
            <text x={x(0) - 16} y={y(tick) + 3.5} textAnchor="end">
              {tick}
            </text>
          </g>
        ))}
        {xTicks.map((tick) => (
          <text key={tick} x={x(tick)} y={HEIGHT - 21} textAnchor="middle">
            {tick}
          </text>
        ))}
        {nothing !== undefined && (
          <g className="nothingline">
            <path d={`M${x(0) - 10} ${y(nothing)}H${WIDTH - 12}`} />
            <text x={WIDTH - 12} y={y(nothing) - 4} textAnchor="end">
              doing nothing {nothing}
            </text>
          </g>
        )}
        {points.map((point) => (
          <circle
            key={point.id}
            cx={x(point.spread)}
            cy={y(point.score)}
            r={point.top ? 6 : 4.2}
            fill={point.top ? "var(--ink)" : "var(--panel)"}
            stroke="var(--ink)"
            strokeWidth="1.4"
          />
        ))}
        {labelled.map((point) => (
          <text key={point.id} className="ink" x={x(point.spread) + 10} y={y(point.score) + 4}>
            {point.id}
          </text>
        ))}
      </g>
    </svg>
  );
}

/** Labels that fit, best moves first, without overlap. */
function labels(points: readonly Point[], x: (spread: number) => number, y: (score: number) => number): Point[] {
  const placed: Point[] = [];
  const free = (point: Point) => {
    const [left, middle] = [x(point.spread) + 8, y(point.score)];
    const hits = (px: number, py: number, width: number) =>
      px + width > left && px < left + 26 && Math.abs(py - middle) < 10;
    return (
      points.every((other) => other === point || !hits(x(other.spread) - 5, y(other.score), 10)) &&
      placed.every((other) => !hits(x(other.spread) + 8, y(other.score), 26))
    );
  };
  for (const point of [...points].sort((a, b) => Number(b.top) - Number(a.top) || b.score - a.score))
    if (free(point)) placed.push(point);
  return placed;
}
