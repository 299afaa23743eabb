import clsx from "clsx";
import { seatShape } from "../ui/mark";

/** The sums of the decision makers as three small columns beside a score. */
export function ScoreBars({ sums, max }: { sums: readonly number[]; max: number }) {
  return (
    <span className="tri" aria-hidden="true" style={{ gridTemplateColumns: `repeat(${sums.length}, 6px)` }}>
      {sums.map((sum, seat) => (
        <i key={seat} className={seatShape(seat)} style={{ height: Math.max(2, Math.round((sum / max) * 15)) }} />
      ))}
    </span>
  );
}

export type RunBar = { kind: "score"; part: number; top: boolean } | { kind: "now" } | { kind: "later" };

/** Scores of all moves of a run in a row of a list. */
export function RunBars({ bars }: { bars: readonly RunBar[] }) {
  return (
    <span className="bars" aria-hidden="true">
      {bars.map((bar, i) => (
        <i
          key={i}
          className={clsx(
            bar.kind === "now" && "br",
            bar.kind === "later" && "bq",
            bar.kind === "score" && bar.top && "bt",
          )}
          style={{ height: bar.kind === "score" ? 2 + Math.round(bar.part * 22) : bar.kind === "now" ? 24 : 3 }}
        />
      ))}
    </span>
  );
}
