import { expect, test } from "vitest";
import type { ConsultSummary, RunSummary } from "../gen/api";
import { outcomeOf, pathOf } from "./run-row";

function judged(panel: ConsultSummary["panel"]): RunSummary {
  const consult = { ticker: "HLXI", moves: [], expected_moves: 15, best: null, do_nothing: 54, panel };
  return { run_id: "7", state: "finished", consult } as unknown as RunSummary;
}

test("a run that a panel judged shows its headline, and a failed panel its sign", () => {
  const headline = "4 moves lead; the panel cannot tell them apart";
  const passed = outcomeOf(judged({ headline, warning: null, failed: false }));
  expect(passed).toEqual({ line: headline, detail: "Judged by a blind panel" });
  const warning = "The panel missed 2 of 5 planted controls.";
  const failed = outcomeOf(judged({ headline: "no verdict: the panel failed its controls", warning, failed: true }));
  expect(failed).toEqual({ line: "No verdict: the panel failed its controls", detail: `✗ ${warning}` });
  const doubtful = outcomeOf(judged({ headline, warning, failed: false }));
  expect(doubtful.detail).toBe(`! ${warning}`);
  expect(pathOf(judged({ headline, warning, failed: true }))).toBe("/runs/7/results");
});
