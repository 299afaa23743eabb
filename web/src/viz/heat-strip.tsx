// The stances of the decision makers by round. Luminance shows the stance; lime marks the current round.
import clsx from "clsx";

export type Cell = "hold" | "partial" | "concede" | "unknown" | "now" | "later" | "skipped";

const LOOK: Record<Cell, string> = {
  hold: "h",
  partial: "p",
  concede: "c",
  unknown: "u",
  now: "w",
  later: "",
  skipped: "n",
};

/** `rounds[r][seat]`. Hidden from screen readers because the row has the same information as text. */
export function HeatStrip({ rounds }: { rounds: readonly (readonly Cell[])[] }) {
  return (
    <span className="strip" aria-hidden="true" style={{ gridTemplateColumns: `repeat(${rounds.length}, 1fr)` }}>
      {rounds.map((seats, round) => (
        <span
          key={round}
          className={clsx("cell", seats.every((cell) => cell === "skipped") && "none")}
          style={{ gridTemplateColumns: `repeat(${seats.length}, 1fr)` }}
        >
          {seats.map((cell, seat) => (
            <i key={seat} className={LOOK[cell]} />
          ))}
        </span>
      ))}
    </span>
  );
}

/** The strip of one thread, for its tab. */
export function MiniStrip({ cells }: { cells: readonly Cell[] }) {
  return (
    <span className="mini" aria-hidden="true" style={{ gridTemplateColumns: `repeat(${cells.length}, 1fr)` }}>
      {cells.map((cell, round) => (
        <i key={round} className={LOOK[cell]} />
      ))}
    </span>
  );
}

export function StripKey() {
  return (
    <span className="key">
      <span>
        <i className="st-h" />
        held
      </span>
      <span>
        <i className="st-p" />
        partly conceded
      </span>
      <span>
        <i className="st-c" />
        conceded
      </span>
      <span>
        <i className="st-w" />
        now
      </span>
    </span>
  );
}
