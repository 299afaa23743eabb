import { readFileSync } from "node:fs";
import { join } from "node:path";
import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import type { EventEnvelope, RunView } from "../gen/run";
import type { followRun } from "./stream";
import { useRun } from "./use-run";

type Follow = Parameters<typeof followRun<EventEnvelope>>[0];
const link = vi.hoisted(() => ({ follow: undefined as Follow | undefined }));
vi.mock("./stream", () => ({
  followRun: (follow: Follow) => {
    link.follow = follow;
    return () => {};
  },
}));

const file = (name: string) => readFileSync(join(import.meta.dirname, "../../fixtures", name), "utf8");
const half = JSON.parse(file("view-half.json")) as RunView;
const later = file("run.ndjson")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as EventEnvelope)
  .filter((event) => event.seq > half.as_of_seq);

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it("offers to resume a run whose last events arrive after the restarted server said that nobody executes it", async () => {
  let snapshot = half;
  vi.stubGlobal("fetch", async () => Response.json(snapshot));
  const { result } = renderHook(() => useRun(half.about.run_id));
  await vi.waitFor(() => expect(result.current.view?.about.driven).toBe(true));

  // The server was killed after it had written ten events that the page has not read.
  snapshot = { ...half, as_of_seq: half.as_of_seq + 10, about: { ...half.about, driven: false } };
  act(() => {
    link.follow?.onState({ kind: "waiting", attempt: 1, retryInMs: 1000, reason: "network" });
    link.follow?.onState({ kind: "live", by: "stream" });
  });
  await vi.waitFor(() => expect(result.current.view?.about.driven).toBe(false));
  act(() => link.follow?.onEvents(later.slice(0, 10)));
  await vi.waitFor(() => expect(result.current.view?.as_of_seq).toBe(half.as_of_seq + 10));
  expect(result.current.view?.about.driven).toBe(false);

  // Somebody resumes it.
  act(() => link.follow?.onEvents(later.slice(10, 11)));
  await vi.waitFor(() => expect(result.current.view?.about.driven).toBe(true));
});
