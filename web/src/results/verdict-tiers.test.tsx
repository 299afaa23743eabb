import { cleanup, render, screen, within } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, test } from "vitest";
import fixture from "../../fixtures/view.json";
import type { ConsultView, MoveEstimate, RunView, VerdictView } from "../gen/run";
import { controlName, controlResult, groups, percent, VerdictTiers } from "./verdict-tiers";

afterEach(cleanup);

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

test("what would change a verdict is shown below its tiers", () => {
  const view = fixture as unknown as RunView;
  const verdict = {
    stage: 1,
    again: [],
    headline: "2 moves lead; the panel cannot tell them apart",
    warning: null,
    stability: null,
    control_scores: {},
    tiers: {
      headline: { kind: "lead", moves: 2 },
      panel: "independent",
      estimates: [
        estimate("m2", 900, "lead"),
        estimate("m4", 800, "lead"),
        { ...estimate("m3", 500, "behind"), chance_above_do_nothing: 799 },
      ],
      told_apart: [{ better: "m2", worse: "m3" }],
      controls: { check: "passed", results: [], left_out: [] },
    },
  } as unknown as VerdictView;
  const consult = { ...view.consult, recommended: ["m2"], verdict } as ConsultView;
  render(
    <MemoryRouter>
      <VerdictTiers view={view} consult={consult} refresh={() => {}} />
    </MemoryRouter>,
  );
  expect(screen.getAllByRole("heading").map((one) => one.textContent)).toEqual([
    "2 moves lead; the panel cannot tell them apart",
    "What would change this",
  ]);
  expect(
    within(screen.getByRole("list"))
      .getAllByRole("listitem")
      .map((one) => one.textContent),
  ).toEqual([
    "Told apart with 95 % confidence: m2 from m3.",
    "Not shown to beat doing nothing: m3.",
    "A second run would most likely keep its winner among these 2.",
  ]);
  expect(screen.getByText(/^Not all moves of the lead are described below\./)).toBeTruthy();
});
