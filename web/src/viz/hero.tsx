// The picture of the start page: 15 moves, 10 rounds, 3 recommendations. Fixed lines, drawn like a run.

const WINNERS = [2, 6, 12];
const HOLLOW = new Set([
  "1-7",
  "7-0",
  "7-1",
  "7-4",
  "7-8",
  "9-1",
  "10-3",
  "10-4",
  "10-6",
  "10-7",
  "10-9",
  "11-3",
  "14-5",
]);
const ORDER = new Map([
  [6, 0],
  [12, 1],
  [2, 2],
]);

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const half = (x1 + x2) / 2;
  return `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`;
}

export function Hero() {
  const width = 400;
  const height = 330;
  const mid = height / 2;
  const pair = [mid - 56, mid + 56];
  const seats = [0, 1, 2, 3, 4].map((i) => 10 + (310 * (i + 0.5)) / 5);
  const rows = Array.from({ length: 15 }, (_, i) => 10 + (310 * i) / 14);
  const gates = Array.from({ length: 10 }, (_, i) => 168 + (192 * (i + 0.5)) / 10);
  return (
    <svg viewBox={`0 0 ${width} ${height}`} fill="none" aria-hidden="true">
      <g stroke="var(--line2)">
        {gates.map((x) => (
          <path key={x} d={`M${x} 3V${height - 3}`} />
        ))}
      </g>
      <g stroke="var(--ink)" strokeWidth="1.15">
        {pair.map((y) => (
          <path key={y} d={`${curve(6, mid, 40, y)}H80`} />
        ))}
        <g opacity=".45">
          {seats.flatMap((y) => pair.map((from) => <path key={`${y}-${from}`} d={curve(80, from, 120, y)} />))}
        </g>
        {rows.map((y, i) => {
          const won = WINNERS.includes(i);
          const rank = ORDER.get(i) ?? 0;
          return (
            <g key={y} strokeWidth={won ? 2.4 : 1.15}>
              <path d={curve(120, seats[Math.floor(i / 3)] ?? mid, 168, y)} opacity={won ? 1 : 0.8} />
              <path d={`M168 ${y}H${won ? 360 : 359}`} opacity={won ? 1 : 0.5} />
              {won && <path d={curve(360, y, 394, mid + (rank - 1) * 26)} />}
              {!won && <path d={`M359 ${y - 3.5}v7`} stroke="var(--ink3)" strokeWidth="1.6" />}
            </g>
          );
        })}
      </g>
      {rows.flatMap((y, i) =>
        gates.map((x, g) =>
          HOLLOW.has(`${i}-${g}`) ? (
            <circle key={`${i}-${g}`} cx={x} cy={y} r="1.9" fill="var(--panel)" stroke="var(--ink)" />
          ) : (
            <circle key={`${i}-${g}`} cx={x} cy={y} r="1.7" fill="var(--ink)" />
          ),
        ),
      )}
      <g fill="var(--panel)" stroke="var(--ink)" strokeWidth="1.3">
        <circle cx="6" cy={mid} r="4.5" />
        {pair.flatMap((y) => [40, 80].map((x) => <circle key={`${x}-${y}`} cx={x} cy={y} r="3" />))}
        {seats.map((y) => (
          <circle key={y} cx="120" cy={y} r="3" />
        ))}
      </g>
      {[0, 1, 2].map((k) => (
        <circle key={k} cx="394" cy={mid + (k - 1) * 26} r="4.5" fill="var(--ink)" />
      ))}
    </svg>
  );
}
