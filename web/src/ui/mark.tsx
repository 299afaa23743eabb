import clsx from "clsx";

/** The mark of an agent: shape, letter and colour, never colour alone. */
export type AgentShape = "C" | "D1" | "D2" | "D3" | "D4" | "D5";

const SEATS: AgentShape[] = ["D1", "D2", "D3", "D4", "D5"];

/** The shape of a decision maker by position. */
export function seatShape(seat: number): AgentShape {
  return SEATS[seat] ?? "D5";
}

/** The mark of an agent. Hidden from screen readers because the name is always beside it. */
export function Mark({ shape }: { shape: AgentShape }) {
  return (
    <span className={clsx("mk", shape)} aria-hidden="true">
      {shape === "C" ? "C" : shape.slice(1)}
    </span>
  );
}
