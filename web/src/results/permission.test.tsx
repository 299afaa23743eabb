import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter, Route, Routes } from "react-router";
import { afterEach, expect, it, vi } from "vitest";
import fixture from "../../fixtures/view.json";
import { forgetSession } from "../api/client";
import type { RunView } from "../gen/run";
import Results from "../routes/results";

const run = fixture as unknown as RunView;
const { moves } = run.consult as NonNullable<RunView["consult"]>;
const verdict = {
  stage: 1,
  again: [],
  headline: "no verdict",
  warning: "The panel missed 1 of 1 controls.",
  stability: null,
  control_scores: {},
  tiers: { panel: "single-model", estimates: [], controls: { check: "failed", results: [], left_out: [] } },
};

/** A run whose second move is held back, and whose panel failed its controls. */
const undecided = {
  ...run,
  consult: {
    ...run.consult,
    recommended: [],
    verdict,
    moves: moves.map((one) => ({ ...one, held: one.move_id === "m2" })),
  },
};

async function show(scopes: string[]) {
  forgetSession();
  vi.stubGlobal("fetch", async (path: string) => {
    if (path === "/api/session") return Response.json({ scopes });
    return path === `/api/runs/${run.about.run_id}` ? Response.json(undecided) : Response.json({}, { status: 404 });
  });
  render(
    <MemoryRouter initialEntries={[`/runs/${run.about.run_id}/results`]}>
      <Routes>
        <Route path="/runs/:runId/results" element={<Results />} />
      </Routes>
    </MemoryRouter>,
  );
  await screen.findByText("m2 is held back");
}

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const offered = () => ["Approve", "Approve anyway"].filter((name) => screen.queryByRole("button", { name }));

it("a reviewer may approve a held move and a verdict without controls", async () => {
  await show(["review"]);
  expect(offered()).toEqual(["Approve", "Approve anyway"]);
});

it("a user without the permission reads who decides", async () => {
  await show(["read"]);
  expect(await screen.findAllByText(/A reviewer decides this\./)).toHaveLength(2);
  expect(offered()).toEqual([]);
});
