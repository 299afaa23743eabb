import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, it, vi } from "vitest";
import fixture from "../../fixtures/paused-view.json";
import type { RunView } from "../gen/run";
import { ReviewMoves } from "./review";

const waiting = fixture as unknown as RunView;
const move = {
  move_id: "m1",
  title: "Sell the idle plant",
  analyst: "analyst_1",
  proposal: {
    title: "Sell the idle plant",
    thesis: "It earns nothing.",
    actions: ["Find a buyer."],
    risks: ["Prices may fall.", "The lease ends in May."],
    cost: "None",
    horizon: "1 year",
  },
  support: { supported: 1, total: 2 },
  findings: [
    { rule: "UNSUPPORTED", severity: "warn", subject: "m1.md", message: "no fact supports `42 million`" },
    { rule: "ROUNDED", severity: "note", subject: "m1.md", message: "7.4 is rounded" },
  ],
  seal: "5ea1",
};

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it("shows risks and unsupported numbers of a move, and folds its actions", async () => {
  vi.stubGlobal("fetch", async (path: string) =>
    Response.json(path === "/api/session" ? { scopes: ["review"] } : { moves: [move], changes: [], seal: "a11" }),
  );
  render(
    <MemoryRouter>
      <ReviewMoves view={waiting} refresh={() => {}} recheck={async () => undefined} />
    </MemoryRouter>,
  );
  await screen.findByText("Review 1 move before the debates");
  const items = screen.getAllByRole("list")[0]?.querySelectorAll("li li") ?? [];
  const shown = [...items].map((item) => [item.textContent, item.closest("details") !== null]);
  expect(shown).toEqual([
    ["warn no fact supports 42 million", false],
    ["Prices may fall.", false],
    ["The lease ends in May.", false],
    ["Find a buyer.", true],
  ]);
  expect(screen.getByText("1 of 2 supported").className).toBe("warntext");
  expect(screen.getByText("1 action").closest("details")?.open).toBe(false);
});
