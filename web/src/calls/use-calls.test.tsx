import { renderHook } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import type { CallPage, ModelCall } from "../gen/api";
import { useCalls } from "./use-calls";

afterEach(() => vi.unstubAllGlobals());

const call = (seq: number) => ({ seq }) as ModelCall;
const page = (seqs: number[], next?: number) => ({ calls: seqs.map(call), next }) as unknown as CallPage;

/** Requests that wait for their answer, by the `after` of their address. */
function server() {
  const waiting: { after: string | null; answer: (page: CallPage) => void }[] = [];
  vi.stubGlobal("fetch", (path: string) => {
    const after = new URL(path, "http://server").searchParams.get("after");
    return new Promise<Response>((done) => waiting.push({ after, answer: (body) => done(Response.json(body)) }));
  });
  return async (after: number, body: CallPage) => {
    await vi.waitFor(() => expect(waiting.map((one) => one.after)).toEqual([String(after)]), 5000);
    waiting.pop()?.answer(body);
  };
}

// Regression: a page that was under way when the run ended was added to the emptied list, without the rows before it.
it("the log has every call when a run ends while a page is loaded", async () => {
  const answer = server();
  const { result, rerender } = renderHook(({ isOver }) => useCalls("r1", "", 9, isOver), {
    initialProps: { isOver: false },
  });
  await answer(0, page([1, 2], 2));
  await vi.waitFor(() => expect(result.current.calls.length).toBe(2), 5000);
  rerender({ isOver: true });
  await answer(2, page([3]));
  await answer(0, page([1, 2], 2));
  await answer(2, page([3]));
  await vi.waitFor(() => expect(result.current.calls.map((one) => one.seq)).toEqual([1, 2, 3]), 5000);
});
