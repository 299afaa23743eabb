import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, it, vi } from "vitest";
import type { ComparedRun, MoveMatch, PanelSummary, RunComparison } from "../gen/api";
import { Comparison, changeWords, rankChange, sentence, tierSentence } from "./comparison";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const place = (title: string, rank: number | null) => ({ move_id: "m1", title, rank, recommended: false, total: 50 });
const match = (before: number | null | undefined, after: number | null | undefined, title = "A"): MoveMatch => ({
  before: before === undefined ? null : place(title, before),
  after: after === undefined ? null : place(title, after),
});

/** A move that panels judged; the rank means nothing. `null` if a run does not have it, `held` without a tier. */
const judged = (move_id: string, before: string | null, after: string | null): MoveMatch => {
  const of = (tier: string | null) => {
    if (tier === null) return null;
    const known = { move_id, title: `Title of ${move_id}`, rank: 1, recommended: true, total: 50 };
    return tier === "held" ? known : { ...known, tier };
  };
  return { before: of(before), after: of(after) };
};

const panels = [
  judged("m12", "lead", "lead"),
  judged("m2", "lead", "lead"),
  judged("m5", "lead", "middle"),
  judged("m7", "held", "behind"),
  judged("m9", null, "lead"),
  judged("m3", "middle", null),
];

it("a rank change says how many places a move won or lost", () => {
  expect([match(3, 1), match(1, 4), match(2, 2), match(undefined, 1), match(1, undefined)].map(changeWords)).toEqual([
    "↑ 2",
    "↓ 3",
    "same",
    "new",
    "gone",
  ]);
  expect(rankChange(match(null, 2))).toBe(0);
});

it("one sentence says what happened to the first place", () => {
  expect(sentence({ moves: [match(1, 1, "Keep")] })).toBe("Both runs rank “Keep” first. No move changed its rank.");
  expect(sentence({ moves: [match(2, 1, "New"), match(1, 2, "Old")] })).toBe(
    "The first place changed from “Old” to “New”. 2 moves changed rank.",
  );
  expect(sentence({ moves: [match(null, null)] })).toContain("no ranking yet");
});

it("the leads of two panels are compared, and nothing is called first", () => {
  const renamed: MoveMatch = {
    before: { ...place("A", 1), move_id: "m2", tier: "lead" },
    after: { ...place("A", 2), move_id: "m4", tier: "lead" },
  };
  const said = [
    panels,
    [renamed],
    [judged("m1", "lead", "behind")],
    [judged("m1", "held", "lead")],
    [judged("m1", "held", "held")],
  ].map((moves) => tierSentence({ moves }));
  expect(said).toEqual([
    "Both runs have m2 and m12 in the lead. Only before: m5. Only after: m9. 2 moves changed tier.",
    "Both runs have m2 → m4 in the lead. No move changed its tier.",
    "The runs have no move of their leads in common. Only before: m1. 1 move changed tier.",
    "The run before has no tiers, so the leads cannot be compared.",
    "Neither of these runs has tiers.",
  ]);
});

async function shown(moves: MoveMatch[], panel: PanelSummary | null = null) {
  const before: ComparedRun = { created_at: "2026-01-02T03:04:05Z", panel: null };
  const after: ComparedRun = { created_at: "2026-01-03T03:04:05Z", panel };
  const data: RunComparison = { before, after, same_company: true, settings: [], moves };
  vi.stubGlobal("fetch", async () => Response.json(data));
  const { container } = render(
    <MemoryRouter>
      <Comparison a={crypto.randomUUID()} b="b" />
    </MemoryRouter>,
  );
  await screen.findByRole("region", { name: /changes$/ });
  return container;
}

it("runs that panels judged are compared by tier, without ranks", async () => {
  const container = await shown(panels);
  const rows = [...container.querySelectorAll(".ranktable tr")].map((row) =>
    [...row.children].map((cell) => cell.textContent).join(" | "),
  );
  expect(rows).toEqual([
    "Move | Tier before | Tier after | Change | Defence score",
    "Title of m2 | Lead | Lead | same | 50 → 50",
    "Title of m12 | Lead | Lead | same | 50 → 50",
    "Title of m9 | – | Lead | new | – → 50",
    "Title of m5 | Lead | Middle | changed | 50 → 50",
    "Title of m7 | – | Behind | changed | 50 → 50",
    "Title of m3 | Middle | – | gone | 50 → –",
  ]);
  expect(container.querySelector(".slope")).toBeNull();
  expect(container.textContent).not.toMatch(/first|rank/i);
});

it("tiers of only one run are not called a change", async () => {
  const container = await shown([judged("m1", "held", "lead"), judged("m2", "held", "behind")]);
  const changes = [...container.querySelectorAll(".ranktable tbody td:nth-child(4)")].map((cell) => cell.textContent);
  expect(changes).toEqual(["–", "–"]);
});

it("a panel without tiers is not compared by rank, and the warning of a failed panel is shown", async () => {
  const warning = "The panel missed 5 of 5 planted controls.";
  const panel = { headline: "no verdict: the panel failed its controls", warning, failed: true };
  const container = await shown([judged("m1", "held", "held")], panel);
  expect(screen.getByText(/✗ The panel missed 5 of 5/)).toBeTruthy();
  expect(container.textContent).toContain("Neither of these runs has tiers.");
  expect(container.textContent).not.toMatch(/first|rank/i);
});
