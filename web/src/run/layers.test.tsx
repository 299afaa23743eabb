import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, it } from "vitest";
import fixture from "../../fixtures/view.json";
import type { ConsultView, MoveEstimate, RunStatus, RunView, VerdictView } from "../gen/run";
import { LayerPanel } from "./layers";
import type { Place } from "./place";

afterEach(cleanup);

const finished = fixture as unknown as RunView;
const place: Place = { layer: 4, move: undefined, chosen: false, thread: "D1", go: () => {} };

const tiers: Record<string, MoveEstimate["tier"]> = { m1: "middle", m2: "lead", m3: "behind", m4: "lead" };
const estimates = Object.entries(tiers).map(([move_id, tier], i) => ({ move_id, tier, kind: "move", score: 700 + i }));

/** The last layer of a run that a panel judged. */
function rank(status: RunStatus, verdict: Partial<VerdictView>, check: string): HTMLElement {
  const panel = { stage: 1, again: ["m1"], warning: null, tiers: { estimates, controls: { check } }, ...verdict };
  const recommended = status.state === "complete" && check !== "failed" ? ["m4", "m2"] : [];
  const consult = { ...finished.consult, recommended, verdict: panel } as unknown as ConsultView;
  return render(
    <MemoryRouter>
      <LayerPanel view={{ ...finished, status, consult }} consult={consult} place={place} />
    </MemoryRouter>,
  ).container;
}

const rows = (container: HTMLElement) =>
  [...container.querySelectorAll(".rline")].map((line) => {
    const [tier, move, , score] = [...line.children].map((cell) => cell.textContent ?? "");
    return `${tier} ${move?.split(" ")[0]} ${score}`;
  });

it("the moves of a panel have a tier and no number", () => {
  const container = rank({ state: "complete", verdict: "pass" }, {}, "passed");
  expect(rows(container)).toEqual(["Lead m2 70", "Lead m4 70", "Middle m1 70", "Behind m3 70"]);
  expect(container.querySelector(".note")).toBeNull();
});

// Regression: the page said that debates were still open.
it("a finished run with a failed panel says that the panel failed", () => {
  const warning = "The panel missed 2 of 5 planted controls.";
  const container = rank({ state: "complete", verdict: "fail" }, { warning }, "failed");
  expect([...container.querySelectorAll(".note")].map((note) => note.textContent)).toEqual([`✗ ${warning}`]);
});

it("the page says which tiers later stages may change", () => {
  const said = (status: RunStatus) => {
    cleanup();
    return rank(status, { stage: 2 }, "passed").querySelector(".note")?.textContent;
  };
  expect(said({ state: "running" })).toBe(
    "4 of 4 moves have a score. These are the tiers after stage 2; later stages may change them.",
  );
  expect(said({ state: "cancelled" })).toBe(
    "4 of 4 moves have a score. These are the tiers after stage 2; the run ended early.",
  );
});

it("moves without a panel are numbered once their order is final", () => {
  const consult = finished.consult as ConsultView;
  const { container } = render(
    <MemoryRouter>
      <LayerPanel view={finished} consult={consult} place={place} />
    </MemoryRouter>,
  );
  expect([...container.querySelectorAll(".rline > .mono")].map((cell) => cell.textContent)).toEqual([
    "1",
    "2",
    "3",
    "4",
  ]);
  expect(screen.getByRole("link", { name: /All results/ })).toBeTruthy();
});
