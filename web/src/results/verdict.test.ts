import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ConsultView, MoveEstimate, RunStatus, RunView, TierList } from "../gen/run";
import { choiceWords, listed, panelNotes, recommendedWords, unfinishedWords, verdictOf } from "./verdict";

const view = JSON.parse(readFileSync(join(import.meta.dirname, "../../fixtures/view.json"), "utf8")) as RunView;
const consult = view.consult as ConsultView;
const best = consult.moves.find((one) => one.move_id === consult.recommended[0]);
const score = best?.scored?.score ?? 0;

const nothing = (points: number): RunView => ({
  ...view,
  about: { ...view.about, do_nothing: { score: points, out_of: 120, spread: 2, breakdown: {} } },
});

describe("the verdict", () => {
  it("is one sentence with the distance to doing nothing", () => {
    const words = verdictOf(nothing(score - 9), { ...consult, close_calls: [] });
    expect(words?.sentence).toContain(`(${best?.move_id})`);
    expect(words?.sentence).toContain("9 above doing nothing");
    expect(words?.changes).toContain("A loss of 9 points: then doing nothing is as good.");
  });

  it("says when no move beats doing nothing", () => {
    expect(verdictOf(nothing(score), consult)?.sentence).toMatch(/^No move beats doing nothing/);
  });

  it("uses the one rule for close calls", () => {
    const [upper = "", lower = ""] = consult.recommended;
    const close_calls = [{ upper, lower, apart: 1, spread: 6 }];
    expect(verdictOf(view, { ...consult, close_calls })?.sentence).toMatch(/^Too close to call between/);
  });

  it("says nothing before the ranking is final", () => {
    expect(verdictOf(view, { ...consult, recommended: [] })).toBeUndefined();
  });
});

/** Tiers of `several_moves_lead_120.snap`, the terminal's output of a demo run. */
function tierList(change: Partial<TierList> = {}): TierList {
  const behind: [string, number][] = [
    ["m13", 700],
    ["m8", 500],
    ["m0", 1000],
    ["m15", 300],
  ];
  const estimates = [
    ...["m12", "m6", "m7", "m10", "m2", "m1"].map((move_id) => ({ move_id, tier: "lead" })),
    ...behind.map(([move_id, chance_above_do_nothing]) => ({ move_id, tier: "behind", chance_above_do_nothing })),
  ] as MoveEstimate[];
  const pairs: Record<string, string[]> = {
    m12: ["m13", "m8", "m0", "m15"],
    m6: ["m13", "m8", "m0", "m15"],
    m7: ["m8", "m0", "m15"],
    m10: ["m8", "m0", "m15"],
    m2: ["m0", "m15"],
    m1: ["m15"],
    m8: ["m15"],
  };
  return {
    headline: { kind: "lead", moves: 6 },
    estimates,
    told_apart: Object.entries(pairs).flatMap(([better, all]) => all.map((worse) => ({ better, worse }))),
    controls: { check: "passed", results: [], left_out: [] },
    ...change,
  } as TierList;
}

describe("the notes of a panel", () => {
  it("are the sentences of the terminal", () => {
    expect(panelNotes(tierList())).toEqual([
      "Told apart with 95 % confidence: m6 and m12 from m0, m8, m13 and m15; m7 and m10 from m0, m8 and m15; m2 from m0 and m15.",
      "Not shown to beat doing nothing: m8, m13 and m15.",
      "A second run would most likely keep its winner among these 6.",
    ]);
    const one = tierList({ headline: { kind: "lead", moves: 1 }, told_apart: [], estimates: [] });
    expect(panelNotes(one)).toEqual(["A second run would most likely have the same winner."]);
    const nothing = tierList({ headline: { kind: "do-nothing-in-lead" }, told_apart: [], estimates: [] });
    expect(panelNotes(nothing)).toEqual([]);
  });

  it("are left out if the panel failed", () => {
    expect(panelNotes(tierList({ controls: { check: "failed", results: [], left_out: [] } }))).toEqual([]);
  });

  it("name moves in a sentence", () => {
    expect([[], ["m1"], ["m1", "m2"], ["m1", "m2", "m3"]].map(listed)).toEqual([
      "",
      "m1",
      "m1 and m2",
      "m1, m2 and m3",
    ]);
  });
});

describe("the heading of the results", () => {
  const judged = (recommended: string[], tiers = tierList(), again = ["m1"]): ConsultView =>
    ({ ...consult, recommended, verdict: { stage: 1, again, tiers } }) as unknown as ConsultView;

  // Regression: "Three moves for …" was above "6 moves lead".
  it("does not count the moves of a panel, which leads with more than it recommends", () => {
    const three = judged(["m12", "m6", "m7"]);
    expect(recommendedWords(three)).toBe("Recommended moves");
    expect(choiceWords(three)).toBe(
      "Not all moves of the lead are described below. This does not make the others worse: the choice within the lead is yours.",
    );
    expect(choiceWords(judged(["m12", "m6", "m7", "m10", "m2", "m1"]))).toBeUndefined();
    expect(recommendedWords(judged(["m12"]))).toBe("Recommended move");
    expect(recommendedWords(judged([]))).toBe("No recommended moves");
    const failed = judged([], tierList({ controls: { check: "failed", results: [], left_out: [] } }));
    expect([recommendedWords(failed), choiceWords(failed)]).toEqual(["No verdict", undefined]);
  });

  it("counts the moves of a ranking", () => {
    expect([recommendedWords(consult), choiceWords(consult)]).toEqual(["Three moves", undefined]);
    expect(recommendedWords({ ...consult, recommended: [] })).toBe("No recommended moves");
  });

  it("comes with what is not final", () => {
    const complete: RunStatus = { state: "complete", verdict: "pass" };
    const said = (status: RunStatus, of: ConsultView) => unfinishedWords({ ...view, status }, of);
    const open = { ...consult, recommended: [] };
    expect([
      said(complete, consult),
      said({ state: "running" }, open),
      said({ state: "cancelled" }, open),
      said(complete, open),
      said(complete, judged([])),
      said({ state: "running" }, judged([])),
      said({ state: "cancelled" }, judged([])),
      // Regression: forecasts and further passes follow an empty list, and the page said that nothing is recommended.
      said({ state: "running" }, judged([], tierList(), [])),
      said({ state: "cancelled" }, judged([], tierList(), [])),
    ]).toEqual([
      undefined,
      "The order is final when all debates have finished.",
      "The run ended early, so this is not a ranking.",
      undefined,
      undefined,
      "These are the tiers after stage 1; later stages may change them.",
      "These are the tiers after stage 1; the run ended early.",
      "These are the tiers after stage 1; the run is not finished.",
      "These are the tiers after stage 1; the run ended early.",
    ]);
  });
});
