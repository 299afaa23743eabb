// Labels and colours of drafts.
import type { DraftRow, DraftState, GateAction } from "../gen/api";
import type { Tone } from "../ui/parts";

const STATES: Record<DraftState, [string, Tone | undefined]> = {
  editing: ["in progress", undefined],
  submitted: ["being checked", undefined],
  escalated: ["needs review", "warn"],
  accepted: ["accepted", "good"],
  applying: ["applying", undefined],
  applied: ["applied", "good"],
  conflict: ["conflict", "bad"],
  rejected: ["rejected", "bad"],
  withdrawn: ["withdrawn", undefined],
  expired: ["expired", undefined],
  reverting: ["reverting", undefined],
  reverted: ["undone", undefined],
};

export function stateWords(state: DraftState): string {
  return STATES[state][0];
}

export function stateTone(state: DraftState): Tone | undefined {
  return STATES[state][1];
}

export function actionTone(action: GateAction): Tone | undefined {
  return action === "reject" ? "bad" : action === "allow" ? undefined : "warn";
}

/** One entry per submission, in the order of the list. */
export function submissions(drafts: readonly DraftRow[]): { first: DraftRow; files: DraftRow[] }[] {
  const found = new Map<string, { first: DraftRow; files: DraftRow[] }>();
  for (const draft of drafts) {
    const isTogether = draft.seal !== null && draft.together.length > 1;
    const key = isTogether ? `${draft.seal} ${draft.state}` : draft.draft_id;
    const entry = found.get(key);
    if (entry) entry.files.push(draft);
    else found.set(key, { first: draft, files: [draft] });
  }
  return [...found.values()];
}

/** The rules that found something, each once, the weightiest first. */
export function rules(draft: DraftRow): { rule: string; action: GateAction }[] {
  const weight: GateAction[] = ["reject", "escalate", "warn", "allow"];
  const sorted = [...draft.findings].sort((a, b) => weight.indexOf(a.action) - weight.indexOf(b.action));
  return sorted.filter((one, at) => sorted.findIndex((other) => other.rule === one.rule) === at);
}
