import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, it, vi } from "vitest";
import { TickerForm } from "./ticker-form";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const HELIX = { ticker: "HLXI", name: "Helix Instruments, Inc. (fictional)", fictional: true };

/** The form on a server without a contact for the SEC, which searches the sample company only. */
function formFor(ticker: string, tickers: unknown[]) {
  const responses: Record<string, unknown> = {
    "/api/session": { scopes: ["admin"] },
    "/api/settings": { model: "demo", contact: false, offline: false, keys: [], images: [] },
    "/api/committees": { committees: [] },
    [`/api/tickers?q=${encodeURIComponent(ticker)}`]: { tickers },
  };
  vi.stubGlobal("fetch", async (path: string) =>
    path in responses ? Response.json(responses[path]) : Response.json({}, { status: 404 }),
  );
  render(
    <MemoryRouter initialEntries={[`/?ticker=${encodeURIComponent(ticker)}`]}>
      <TickerForm />
    </MemoryRouter>,
  );
}

const isBlocked = () => screen.getByRole<HTMLButtonElement>("button", { name: "Start run" }).disabled;

// Regression: the page called every real company unknown, and started the sample company for HE, a real ticker.
it.each([
  ["AAPL", []],
  ["HE", [HELIX]],
  ["HELIX", [HELIX]],
])(
  "without a contact for the SEC, %s is neither called unknown nor taken for the sample company",
  async (ticker, found) => {
    formFor(ticker, found);
    expect(await screen.findByText("Companies cannot be looked up")).toBeTruthy();
    expect(await screen.findByText(/The SEC requires a contact name and email/)).toBeTruthy();
    expect(isBlocked()).toBe(true);
  },
);

it.each([
  ["HELIX INSTR", [HELIX], "Did you mean HLXI, Helix Instruments, Inc. (fictional)?"],
  ["EVAL-07", [], "Try HLXI, a fictional company"],
])("without a contact for the SEC, %s starts a fictional company", async (ticker, found, hint) => {
  formFor(ticker, found);
  expect(await screen.findByText(hint)).toBeTruthy();
  await vi.waitFor(() => expect(isBlocked()).toBe(false));
});
