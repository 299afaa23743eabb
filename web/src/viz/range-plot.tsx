// The scores of all decision makers on one scale.
import type { ReactElement } from "react";
import { type AgentShape, seatShape } from "../ui/mark";

export interface Judge {
  name: string;
  value: number;
}

const COLOUR: Record<AgentShape, string> = {
  C: "var(--c)",
  D1: "var(--d1)",
  D2: "var(--d2)",
  D3: "var(--d3)",
  D4: "var(--d4)",
  D5: "var(--d5)",
};

/** The shape of a decision maker as a small mark of a chart. */
export function Shape({ shape, x, y }: { shape: AgentShape; x: number; y: number }): ReactElement {
  const fill = COLOUR[shape];
  switch (shape) {
    case "D1":
      return <circle cx={x} cy={y} r="4.3" fill={fill} />;
    case "D2":
      return <rect x={x - 3.9} y={y - 3.9} width="7.8" height="7.8" rx="1" fill={fill} />;
    case "D3":
      return <path d={`M${x} ${y - 4.9}l4.9 8.6h-9.8z`} fill={fill} />;
    case "D4":
    case "C":
      return <path d={`M${x} ${y - 5}l5 5-5 5-5-5z`} fill={fill} />;
    case "D5":
      return <path d={`M${x} ${y - 4.8}l4.6 3.3-1.8 5.400h-5.600l-1.8-5.400z`} fill={fill} />;
  }
}

export function RangePlot({
  judges,
  max,
  width = 200,
  ticks = 5,
  nothing,
}: {
  judges: readonly Judge[];
  max: number;
  width?: number;
  ticks?: number;
  /** The mean score of doing nothing, drawn as a line. */
  nothing?: number | undefined;
}) {
  const height = 22;
  const y = height / 2;
  const at = (value: number) => 6 + ((width - 12) * value) / max;
  const values = judges.map((judge) => judge.value);
  const low = Math.min(...values);
  const high = Math.max(...values);
  // Equal values are drawn side by side, inside the frame.
  const place = (seat: number): number => {
    const value = values[seat] ?? 0;
    const same = values.flatMap((other, i) => (other === value ? [i] : []));
    const offset = same.length > 1 ? (same.indexOf(seat) - (same.length - 1) / 2) * 8.4 : 0;
    return Math.min(width - 5, Math.max(5, at(value) + offset));
  };
  const said = judges.map((judge) => `${judge.name} ${judge.value}`).join(", ");
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${said} of ${max}${nothing === undefined ? "" : `; doing nothing ${nothing.toFixed(1)}`}`}
      className="range"
    >
      <path d={`M6 ${y}H${width - 6}`} stroke="var(--line2)" />
      {Array.from({ length: ticks + 1 }, (_, i) => (
        <path key={i} d={`M${at((max * i) / ticks)} ${y - 2.5}v5`} stroke="var(--line2)" />
      ))}
      {nothing !== undefined && <path className="nothingmark" d={`M${at(nothing)} 2V${height - 2}`} />}
      {high > low && <path d={`M${at(low)} ${y}H${at(high)}`} stroke="var(--ink)" strokeWidth="2.4" opacity=".28" />}
      <g stroke="var(--panel)">
        {judges.map((judge, seat) => (
          <Shape key={judge.name} shape={seatShape(seat)} x={place(seat)} y={y} />
        ))}
      </g>
    </svg>
  );
}
