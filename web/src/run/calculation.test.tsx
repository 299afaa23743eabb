import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { CalculationResult, MoveView } from "../gen/run";
import { Calculation, calculationsOf, outcomeWords } from "./calculation";

afterEach(cleanup);

const margin: CalculationResult = {
  id: "X0:m7-D2-1",
  speaker: "D2",
  thread: "D2",
  round: 1,
  purpose: "What the move has to protect.",
  code: 'result("margin", 14.2, "%")',
  code_sha256: "00",
  facts: ["Revenue:FY2025"],
  outcome: { outcome: "values", values: [{ name: "margin", value: "14.2", unit: "%" }] },
};

test("a calculation shows its value, its facts and its program", () => {
  render(<Calculation calculation={margin} />);
  expect(screen.getByText("margin 14.2%")).toBeDefined();
  expect(screen.getByText("Facts read: Revenue:FY2025")).toBeDefined();
  expect(screen.queryByText("Assumption")).toBeNull();
  expect(screen.getByText('result("margin", 14.2, "%")')).toBeDefined();
});

test("values that rest on constants, or on no fact, are assumptions", () => {
  const { rerender } = render(<Calculation calculation={{ ...margin, constants: ["0.08"] }} />);
  expect(screen.getByText("Assumption")).toBeDefined();
  expect(screen.getByText("Assumed constants: 0.08")).toBeDefined();
  rerender(<Calculation calculation={{ ...margin, facts: [] }} />);
  expect(screen.getByText("Assumption")).toBeDefined();
});

test("a calculation without values says why", () => {
  const failed = { ...margin, outcome: { outcome: "failed" as const, why: "stopped at the time limit" } };
  expect(outcomeWords(failed)).toBe("Failed: stopped at the time limit");
  render(<Calculation calculation={failed} />);
  expect(screen.getByText("No result")).toBeDefined();
});

test("calculations are shown with their turn, and those of the opening in every thread", () => {
  const opening = { ...margin, id: "X0:m7-critic-1", speaker: "critic", thread: "all" };
  const one = { calculations: [margin, opening] } as unknown as MoveView;
  expect(calculationsOf(one, { round: 1, role: "D2" }, "D2")).toEqual([margin]);
  expect(calculationsOf(one, { round: 1, role: "critic" }, "D1")).toEqual([opening]);
  expect(calculationsOf(one, { round: 2, role: "D2" }, "D2")).toEqual([]);
});
