import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import type { MoveMatch } from "../gen/api";
import { SlopeChart } from "./slope-chart";

afterEach(cleanup);

const LONG = "Acquire a small firm that makes sensors for laboratories";
const place = (title: string, rank: number | null) => ({ move_id: "m1", title, rank, recommended: false, total: 50 });

const moves: MoveMatch[] = [
  { before: place(LONG, 2), after: place(LONG, 1) },
  { before: place("Raise prices", 1), after: place("Raise list prices", 2) },
  { before: place("Sell the plant", 3), after: null },
];

it("a line joins the ranks of a move in both runs", () => {
  const { container } = render(<SlopeChart moves={moves} names={["before", "after"]} />);
  const lines = [...container.querySelectorAll(".slopeline")].map((line) => {
    const path = line.querySelector("path")?.getAttribute("d") ?? "none";
    const heights = path.replace(/[ML][\d.]+/g, "").trim();
    const dots = [...line.querySelectorAll("circle")].map((dot) => dot.getAttribute("cy"));
    return [line.getAttribute("class"), heights, dots.join(" ")];
  });
  expect(lines).toEqual([
    ["slopeline up", "73 47", "73 47"],
    ["slopeline down", "47 73", "47 73"],
    ["slopeline same", "none", "99"],
  ]);
});

it("a label that is cut has the whole title as a tooltip", () => {
  const { container } = render(<SlopeChart moves={moves} names={["before", "after"]} />);
  expect(container.querySelector(".slopeline text")?.textContent).toBe("Acquire a small firm that makes s… 2");
  expect([...container.querySelectorAll("title")].map((title) => title.textContent)).toEqual([
    `${LONG}: 2 → 1`,
    "Raise prices / Raise list prices: 1 → 2",
    "Sell the plant: 3 → –",
  ]);
});
