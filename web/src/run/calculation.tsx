import type { CalculationResult, MoveView } from "../gen/run";
import { plain } from "../model/format";
import { Tag } from "../ui/parts";

/** The calculations that a speaker attached to a turn of a thread. The opening is in all threads. */
export function calculationsOf(one: MoveView, turn: { round: number; role: string }, thread: string) {
  const isOfTurn = (calculation: CalculationResult) =>
    calculation.round === turn.round &&
    calculation.speaker === turn.role &&
    (calculation.thread === thread || calculation.thread === "all");
  return (one.calculations ?? []).filter(isOfTurn);
}

/** The values of a calculation as text, or why it has none. */
export function outcomeWords({ outcome }: CalculationResult): string {
  switch (outcome.outcome) {
    case "values":
      return outcome.values
        .map(({ name, value, unit }) => `${name} ${value}${unit === "%" || unit === "x" ? unit : unit && ` ${unit}`}`)
        .join(", ");
    case "failed":
      return `Failed: ${outcome.why}`;
    case "not-run":
      return `Not run: ${outcome.why}`;
  }
}

/** One calculation with what it read, what it assumed and its program. */
export function Calculation({ calculation }: { calculation: CalculationResult }) {
  const { id, purpose, facts = [], constants = [], code, outcome } = calculation;
  const isAssumed = outcome.outcome === "values" && (constants.length > 0 || facts.length === 0);
  return (
    <section className="calc" aria-label={`Calculation ${id}`}>
      <p className="row">
        <span className="mono">{id}</span>
        {outcome.outcome !== "values" && <Tag icon="warn">No result</Tag>}
        {isAssumed && <Tag>Assumption</Tag>}
      </p>
      <p>{plain(purpose)}</p>
      <p className="mono">{plain(outcomeWords(calculation))}</p>
      {facts.length > 0 && <p className="muted">Facts read: {plain(facts.join(", "))}</p>}
      {constants.length > 0 && <p className="muted">Assumed constants: {plain(constants.join(", "))}</p>}
      <details>
        <summary>Program</summary>
        <pre>{plain(code)}</pre>
      </details>
    </section>
  );
}
