import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import fixture from "../../fixtures/view-half.json";
import type { RunView } from "../gen/run";
import { Banners, RunHead } from "./head";

const running = fixture as unknown as RunView;
const paused: RunView = { ...running, status: { state: "paused", reason: "person", detail: "paused by ada" } };
const idle: RunView = { ...paused, about: { ...paused.about, driven: false } };
const recheck = vi.fn(async () => running.about);
let respond: ((response: Response) => void) | undefined;

beforeEach(() => {
  respond = undefined;
  recheck.mockReset().mockResolvedValue(running.about);
  vi.stubGlobal("fetch", (path: string) => {
    if (path === "/api/session") return Promise.resolve(Response.json({ scopes: ["run"] }));
    return new Promise<Response>((done) => {
      respond = done;
    });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function head(view: RunView) {
  return (
    <MemoryRouter>
      <RunHead view={view} link={{ kind: "live", by: "stream" }} title="Helix" recheck={recheck} />
    </MemoryRouter>
  );
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

/** Answers the request for the last action. */
async function answer(response: Response) {
  await vi.waitFor(() => expect(respond).toBeDefined());
  respond?.(response);
  respond = undefined;
}

it("a run is resuming from the click until its first event", async () => {
  const { rerender } = render(head(paused));
  await userEvent.click(button("Resume"));
  expect(button("Resuming…").disabled).toBe(true);
  await answer(Response.json({}));
  await vi.waitFor(() => expect(recheck).toHaveBeenCalled());
  expect(button("Resuming…").disabled).toBe(true);
  rerender(head({ ...running, as_of_seq: paused.as_of_seq + 1 }));
  expect(button("Pause").disabled).toBe(false);
});

// Regression: a server that stopped before the first event left the only button disabled until the page was reloaded.
it.each([
  ["Resume", "Resuming…"],
  ["Stop", "Stopping…"],
])("%s can be requested again if nothing executes the run", async (name, waiting) => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  recheck.mockResolvedValue(idle.about);
  render(head(idle));
  await userEvent.click(button(name));
  if (name === "Stop") await userEvent.click(button("Stop permanently"));
  expect(button(waiting).disabled).toBe(true);
  await answer(Response.json({}));
  await vi.waitFor(() => expect(recheck).toHaveBeenCalledTimes(1));
  expect(button(waiting).disabled).toBe(true);
  await act(() => vi.advanceTimersByTimeAsync(5000));
  expect(button(name).disabled).toBe(false);
});

it("an action on a run that is executed stays requested", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  render(head(running));
  await userEvent.click(button("Pause"));
  await answer(Response.json({}));
  await vi.waitFor(() => expect(recheck).toHaveBeenCalledTimes(1));
  await act(() => vi.advanceTimersByTimeAsync(20_000));
  expect(button("Pausing…").disabled).toBe(true);
});

it("a refused stop leaves the pause that was requested before", async () => {
  render(head(running));
  await userEvent.click(button("Pause"));
  await answer(Response.json({}));
  await userEvent.click(button("Stop"));
  await userEvent.click(button("Stop permanently"));
  expect(button("Stopping…").disabled).toBe(true);
  await answer(Response.json({ status: 409, code: "busy", detail: "not now" }, { status: 409 }));
  expect((await screen.findByRole<HTMLButtonElement>("button", { name: "Pausing…" })).disabled).toBe(true);
  expect(button("Stop").disabled).toBe(false);
});

it("a run that is pausing can be stopped", async () => {
  render(head(running));
  await userEvent.click(button("Pause"));
  await userEvent.click(button("Stop"));
  await userEvent.click(button("Stop permanently"));
  expect(button("Stopping…").disabled).toBe(true);
});

it("a pause that took effect is not pending again when another user resumes the run", async () => {
  const { rerender } = render(head(running));
  await userEvent.click(button("Pause"));
  expect(button("Pausing…").disabled).toBe(true);
  rerender(head({ ...paused, as_of_seq: running.as_of_seq + 1 }));
  expect(button("Resume").disabled).toBe(false);
  rerender(head({ ...running, as_of_seq: running.as_of_seq + 2 }));
  expect(button("Pause").disabled).toBe(false);
});

it("a paused run is stopping until it has stopped, or until the server refuses", async () => {
  render(head(paused));
  await userEvent.click(button("Stop"));
  await userEvent.click(button("Stop permanently"));
  expect(button("Stopping…").disabled).toBe(true);
  expect(button("Resume").disabled).toBe(true);
  await answer(Response.json({ status: 409, code: "busy", detail: "not now" }, { status: 409 }));
  expect((await screen.findByRole<HTMLButtonElement>("button", { name: "Stop" })).disabled).toBe(false);
});

function banner(view: RunView) {
  const banners = <Banners view={view} link={{ kind: "live", by: "stream" }} recheck={recheck} />;
  return render(<MemoryRouter>{banners}</MemoryRouter>).container.querySelector(".note")?.textContent;
}

// Regression: the banner blamed failed requests of a run whose panel did not tell the moves from planted bad ones.
it("a run whose panel failed its controls says so", () => {
  const warning = "The panel did not recognise 3 of 4 planted bad moves.";
  const verdict = { tiers: { controls: { check: "failed" } }, warning };
  const view = {
    ...running,
    status: { state: "complete", verdict: "needs-person" },
    consult: { ...running.consult, recommended: [], verdict },
    usage: { ...running.usage, failed_calls: 2 },
  } as unknown as RunView;
  expect(banner(view)).toBe(`The run ended without a recommendation. ${warning} Results`);
});

it("a paused run says so once", () => {
  const said = (detail: string) => {
    cleanup();
    const view: RunView = { ...paused, status: { state: "paused", reason: "person", detail } };
    return banner(view);
  };
  expect(said("paused on request")).toBe("Paused on request.");
  expect(said("the server is stopping")).toBe("Paused. the server is stopping");
});
