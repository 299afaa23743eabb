// The decision as text, computed from the ranking, the score of doing nothing and the one rule for close calls.
import type { ConsultView, DoNothingView, MoveView, RunView } from "../gen/run";
import { plain } from "../model/format";
import { OBJECTION, ranked } from "../model/select";

export interface VerdictWords {
  /** One plain sentence. */
  sentence: string;
  /** What would change the decision. */
  changes: string[];
}

/** Nothing while the run has no final ranking. */
export function verdictOf(view: RunView, consult: ConsultView): VerdictWords | undefined {
  const [first, second] = ranked(consult).filter((one) => consult.recommended.includes(one.move_id));
  if (!first?.scored || first.scored.score === null) return undefined;
  const nothing = view.about.do_nothing;
  return { sentence: sentence(consult, first, nothing), changes: changes(consult, first, second, nothing) };
}

function named(one: MoveView): string {
  return `“${plain(one.title ?? one.move_id)}” (${one.move_id})`;
}

function sentence(consult: ConsultView, first: MoveView, nothing: DoNothingView | undefined): string {
  const score = first.scored?.score ?? 0;
  const outOf = first.scored?.out_of ?? 120;
  if (nothing && score <= nothing.score)
    return `No move beats doing nothing: the best, ${named(first)}, has ${score} of ${outOf} points, and doing nothing has ${nothing.score}.`;
  const over = nothing ? `, ${score - nothing.score} above doing nothing` : "";
  const tie = consult.close_calls.find((one) => one.upper === first.move_id);
  const other = tie && consult.moves.find((one) => one.move_id === tie.lower);
  if (tie && other)
    return `Too close to call between ${named(first)} and ${named(other)}: they are ${points(tie.apart)} apart, but decision makers differ by up to ${tie.spread}. Both have about ${score} of ${outOf}${over}.`;
  return `The committee recommends ${named(first)}, with ${score} of ${outOf} points${over}.`;
}

function changes(
  consult: ConsultView,
  first: MoveView,
  second: MoveView | undefined,
  nothing: DoNothingView | undefined,
): string[] {
  const found: string[] = [];
  const score = first.scored?.score ?? 0;
  const next = second?.scored?.score;
  if (second && typeof next === "number")
    found.push(
      next === score
        ? `One more point for ${named(second)}, which has the same score.`
        : `${points(score - next + 1)} more for ${named(second)}, the second.`,
    );
  const objection = first.scored?.key_objection;
  if (objection && objection.state !== "answered")
    found.push(
      `The hardest objection to ${first.move_id} (${objection.severity}, ${OBJECTION[objection.state].name.toLowerCase()}), if it turns out to be right.`,
    );
  const unsupported = (first.check?.numbers ?? 0) - (first.check?.supported ?? 0);
  if (unsupported > 0)
    found.push(
      `${unsupported} ${unsupported === 1 ? "number" : "numbers"} of ${first.move_id} that no filing supports, if wrong.`,
    );
  if (nothing && score > nothing.score)
    found.push(`A loss of ${points(score - nothing.score)}: then doing nothing is as good.`);
  const held = consult.moves.filter((one) => one.held).map((one) => one.move_id);
  if (held.length > 0)
    found.push(`An approval of ${held.join(", ")}, which automatic checks hold back from the ranking.`);
  return found;
}

function points(number: number): string {
  return number === 1 ? "1 point" : `${number} points`;
}
