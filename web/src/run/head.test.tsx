import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import fixture from "../../fixtures/view-half.json";
import type { RunView } from "../gen/run";
import { Banners, RunHead } from "./head";

const running = fixture as unknown as RunView;
const paused: RunView = { ...running, status: { state: "paused", reason: "person", detail: "paused by ada" } };
const refresh = vi.fn();
let respond: ((response: Response) => void) | undefined;

beforeEach(() => {
  respond = undefined;
  refresh.mockClear();
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
});

function head(view: RunView) {
  return (
    <MemoryRouter>
      <RunHead view={view} link={{ kind: "live", by: "stream" }} title="Helix" refresh={refresh} />
    </MemoryRouter>
  );
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const isRequested = () => vi.waitFor(() => expect(respond).toBeDefined());

it("a run is resuming from the click until its first event", async () => {
  const { rerender } = render(head(paused));
  await userEvent.click(button("Resume"));
  expect(button("Resuming…").disabled).toBe(true);
  await isRequested();
  respond?.(Response.json({}));
  await vi.waitFor(() => expect(refresh).toHaveBeenCalled());
  expect(button("Resuming…").disabled).toBe(true);
  rerender(head({ ...running, as_of_seq: paused.as_of_seq + 1 }));
  expect(button("Pause").disabled).toBe(false);
});

// Regression: a server that stopped before the first event left the only button disabled until the page was reloaded.
it("a run whose driver ends without an event can be resumed again", async () => {
  const idle = { ...paused, about: { ...paused.about, driven: false } };
  const { rerender } = render(head(idle));
  await userEvent.click(button("Resume"));
  rerender(head(paused));
  expect(button("Resuming…").disabled).toBe(true);
  rerender(head(idle));
  expect(button("Resume").disabled).toBe(false);
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
  await isRequested();
  respond?.(Response.json({ status: 409, code: "busy", detail: "not now" }, { status: 409 }));
  expect((await screen.findByRole<HTMLButtonElement>("button", { name: "Stop" })).disabled).toBe(false);
});

it("a paused run says so once", () => {
  const said = (detail: string) => {
    cleanup();
    const view: RunView = { ...paused, status: { state: "paused", reason: "person", detail } };
    const banners = <Banners view={view} link={{ kind: "live", by: "stream" }} refresh={() => {}} />;
    return render(<MemoryRouter>{banners}</MemoryRouter>).container.querySelector(".note")?.textContent;
  };
  expect(said("paused on request")).toBe("Paused on request.");
  expect(said("the server is stopping")).toBe("Paused. the server is stopping");
});
