import clsx from "clsx";

/** Which of the shapes an agent has: shape, letter and colour, never colour alone. */
export type AgentShape = "C" | "D1" | "D2" | "D3" | "D4" | "D5";

const SEATS: AgentShape[] = ["D1", "D2", "D3", "D4", "D5"];

/** The shape of a decision maker by seat. */
export function seatShape(seat: number): AgentShape {
  return SEATS[seat] ?? "D5";
}

/** The mark of an agent. Its name stands beside it wherever it is shown, so it is silent for screen readers. */
export function Mark({ shape }: { shape: AgentShape }) {
  return (
    <span className={clsx("mk", shape)} aria-hidden="true">
      {shape === "C" ? "C" : shape.slice(1)}
    </span>
  );
}
