import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ConsultView, RunView } from "../gen/run";
import { verdictOf } from "./verdict";

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
