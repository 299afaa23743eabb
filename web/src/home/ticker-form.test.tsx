import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, it, vi } from "vitest";
import { TickerForm } from "./ticker-form";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

// Without a contact the server knows only the sample company, and the page called every other ticker unknown.
it("a real company without a contact for the SEC is not called unknown", async () => {
  const settings = { model: "demo", contact: false, offline: false, keys: [], images: [] };
  const responses: Record<string, unknown> = {
    "/api/session": { scopes: ["admin"] },
    "/api/settings": settings,
    "/api/committees": { committees: [] },
    "/api/tickers?q=AAPL": { tickers: [] },
  };
  vi.stubGlobal("fetch", async (path: string) =>
    path in responses ? Response.json(responses[path]) : Response.json({}, { status: 404 }),
  );
  render(
    <MemoryRouter initialEntries={["/?ticker=AAPL"]}>
      <TickerForm />
    </MemoryRouter>,
  );
  expect(await screen.findByText("Companies cannot be looked up")).toBeTruthy();
  expect(await screen.findByText(/The SEC requires a contact name and email/)).toBeTruthy();
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Start run" }).disabled).toBe(true);
});
