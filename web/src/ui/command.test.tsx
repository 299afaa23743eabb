import { cleanup, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter, useLocation } from "react-router";
import { afterEach, expect, it, vi } from "vitest";
import CommandMenu from "./command";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const run = (id: string, title: string) => ({
  run_id: id,
  title,
  state: "finished",
  created_at: "2026-01-02T03:04:05Z",
});

function Place() {
  return <p data-testid="place">{useLocation().pathname}</p>;
}

it("Enter opens what fits of the runs already listed while the server still searches", async () => {
  let searches = 0;
  vi.stubGlobal("fetch", (path: string) => {
    if (path === "/api/session") return Promise.resolve(Response.json({ scopes: ["admin"] }));
    if (path.includes("q=")) {
      searches += 1;
      return new Promise<Response>(() => {});
    }
    return Promise.resolve(Response.json({ runs: [run("a", "ACME, 3 rounds"), run("b", "HLXI, 3 rounds")], total: 2 }));
  });
  const noop = () => {};
  render(
    <MemoryRouter>
      <Place />
      <CommandMenu onClose={noop} onTheme={noop} onHelp={noop} />
    </MemoryRouter>,
  );
  await screen.findByText("HLXI, 3 rounds");
  await userEvent.type(screen.getByRole("combobox"), "hlxi");
  await waitFor(() => expect(searches).toBe(1));
  expect(screen.getAllByRole("option").map((one) => one.firstChild?.textContent)).toEqual(["HLXI, 3 rounds"]);
  await userEvent.keyboard("{Enter}");
  expect(screen.getByTestId("place").textContent).toBe("/runs/b");
});
