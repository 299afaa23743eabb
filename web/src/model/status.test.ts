import { expect, it } from "vitest";
import type { RunSummary } from "../gen/api";
import type { RunStatus, RunVerdict, RunView } from "../gen/run";
import { conditionOfSummary, conditionOfView, type RunCondition } from "./status";

const ended = (verdict: RunVerdict): [RunStatus, Partial<RunSummary>] => [
  { state: "complete", verdict },
  { state: "finished", verdict },
];

// The page once called a run "Finished" that the list called "Did not pass".
it.each<[RunCondition, RunStatus, Partial<RunSummary>, boolean?]>([
  ["running", { state: "running" }, { state: "running" }],
  ["interrupted", { state: "running" }, { state: "running" }, false],
  ["paused", { state: "paused", reason: "budget", detail: "x" }, { state: "paused" }],
  ["needs-review", { state: "paused", reason: "question", detail: "x" }, { state: "paused", needs_review: true }],
  ["finished", ...ended("pass")],
  ["review-result", ...ended("needs-person")],
  ["not-passed", ...ended("fail")],
  ["failed", { state: "failed", detail: "x" }, { state: "failed" }],
  ["stopped", { state: "cancelled" }, { state: "cancelled" }],
])("the page and the list call a run %s", (condition, status, summary, driven = true) => {
  expect(conditionOfView({ status, about: { driven } } as RunView)).toBe(condition);
  expect(conditionOfSummary({ verdict: null, ...summary, driven } as RunSummary)).toBe(condition);
});
