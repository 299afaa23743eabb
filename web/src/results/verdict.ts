// The decision as text: of a ranking, computed from its scores, doing nothing and the one rule for close calls; of a
// panel, with the sentences of `VerdictSummary` in core.
import type { ConsultView, DoNothingView, MoveView, RunView, TierList, VerdictTier } from "../gen/run";
import { plain } from "../model/format";
import { isOver } from "../model/reduce";
import { byNumber, OBJECTION, ranked } from "../model/select";

/** Below this chance, in thousandths, a move is not shown to beat doing nothing. */
const BEATS_NOTHING_FROM = 800;
const MAX_GROUPS = 3;

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
      `The strongest objection to ${first.move_id} (${objection.severity}, ${OBJECTION[objection.state].name.toLowerCase()}), if it turns out to be right.`,
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

/** `m1, m2 and m3`. */
export function listed(ids: readonly string[]): string {
  return ids.length < 2 ? ids.join("") : `${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`;
}

function idsOf(tiers: TierList, tier: VerdictTier): string[] {
  const found = tiers.estimates.filter((one) => one.tier === tier);
  return found.map((one) => one.move_id).sort(byNumber);
}

/** What a panel told apart, and what a second run would most likely show: the sentences below the terminal's table. */
export function panelNotes(tiers: TierList): string[] {
  if (tiers.controls.check === "failed") return [];
  const unproven = tiers.estimates.filter((one) => (one.chance_above_do_nothing ?? 1000) < BEATS_NOTHING_FROM);
  const below = listed(unproven.map((one) => one.move_id).sort(byNumber));
  return [toldApart(tiers), below && `Not shown to beat doing nothing: ${below}.`, expectation(tiers)].filter(Boolean);
}

/** Moves of the lead that are better than the same others are listed together. */
function toldApart(tiers: TierList): string {
  const groups = new Map<string, { better: string[]; worse: string[] }>();
  for (const id of idsOf(tiers, "lead")) {
    const worse = tiers.told_apart.filter((pair) => pair.better === id).map((pair) => pair.worse);
    if (worse.length === 0) continue;
    worse.sort(byNumber);
    const group = groups.get(worse.join());
    if (group) group.better.push(id);
    else groups.set(worse.join(), { better: [id], worse });
  }
  const shown = [...groups.values()].sort((a, b) => b.worse.length - a.worse.length).slice(0, MAX_GROUPS);
  const words = shown.map(({ better, worse }) => `${listed(better)} from ${listed(worse)}`);
  return words.length > 0 ? `Told apart with 95 % confidence: ${words.join("; ")}.` : "";
}

function expectation({ headline }: TierList): string {
  if (headline.kind !== "lead") return "";
  return headline.moves === 1
    ? "A second run would most likely have the same winner."
    : `A second run would most likely keep its winner among these ${headline.moves}.`;
}

/** A sentence if not every move of the lead is recommended. */
export function choiceWords({ recommended, verdict }: ConsultView): string | undefined {
  const lead = verdict ? idsOf(verdict.tiers, "lead").filter((id) => id !== "m0") : [];
  if (recommended.length === 0 || recommended.length >= lead.length) return undefined;
  return "Not all moves of the lead are described below. This does not make the others worse: the choice within the lead is yours.";
}

/** The heading of the moves that a run recommends. */
export function recommendedWords({ recommended, verdict }: ConsultView): string {
  const count = recommended.length;
  if (count === 0) return verdict?.tiers.controls.check === "failed" ? "No verdict" : "No recommended moves";
  if (verdict) return count === 1 ? "Recommended move" : "Recommended moves";
  return ["One move", "Two moves", "Three moves", "Four moves", "Five moves"][count - 1] ?? `${count} moves`;
}

/** Whether the order of the moves, or their tiers, can no longer change. */
export function isFinal({ status }: RunView, { recommended }: ConsultView): boolean {
  return status.state === "complete" || recommended.length > 0;
}

/** Why the order of the moves, or their tiers, may still change or is incomplete; nothing once it is final. */
export function unfinishedWords(view: RunView, consult: ConsultView): string | undefined {
  const { status } = view;
  const { verdict } = consult;
  if (isFinal(view, consult)) return undefined;
  if (verdict) {
    // Forecasts, or another pass of `--repeat`, follow the last stage.
    const goesOn = verdict.again.length > 0 ? "later stages may change them" : "the run is not finished";
    return `These are the tiers after stage ${verdict.stage}; ${isOver(status) ? "the run ended early" : goesOn}.`;
  }
  return isOver(status)
    ? "The run ended early, so this is not a ranking."
    : "The order is final when all debates have finished.";
}
