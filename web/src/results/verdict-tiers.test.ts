import { expect, test } from "vitest";
import type { MoveEstimate } from "../gen/run";
import { controlName, controlResult, groups, percent } from "./verdict-tiers";

function estimate(move_id: string, score: number, tier?: MoveEstimate["tier"]): MoveEstimate {
  return { move_id, kind: "move", score, debates: 1, tier: tier ?? null } as MoveEstimate;
}

test("estimates are grouped by tier, best first, and those without a tier come last", () => {
  const all = [
    estimate("m1", 500, "behind"),
    estimate("m2", 900, "lead"),
    estimate("m3", 700),
    estimate("m4", 950, "lead"),
  ];
  const found = groups(all).map(([tier, rows]) => [tier, rows.map((one) => one.move_id)]);
  expect(found).toEqual([
    ["lead", ["m4", "m2"]],
    ["behind", ["m1"]],
    [null, ["m3"]],
  ]);
});

test("chances are whole percent, and a missing chance is a dash", () => {
  expect([percent(784), percent(4), percent(null), percent(undefined)]).toEqual(["78 %", "0 %", "–", "–"]);
});

test("a planted control is named by how it was made and who caught it", () => {
  expect(controlName({ kind: "known-bad" })).toBe("Known-bad move");
  expect(controlName({ kind: { "weakened-copy": "m2" } })).toBe("Weakened copy of m2");
  expect(controlResult({ is_caught: true, caught_by: ["P1", "P2"] })).toBe("caught by 2 members");
  expect(controlResult({ is_caught: false, caught_by: ["P1"] })).toBe("missed, caught by 1 member only");
});
