import { afterEach, describe, expect, it, vi } from "vitest";
import type { Slots } from "./slots";
import { followRun, type LinkState, type Sequenced } from "./stream";

type Event = Sequenced & { event: string };

const frame = (seq: number, event = "turn") =>
  `id: ${seq}\nevent: ${event}\ndata: ${JSON.stringify({ seq, event })}\n\n`;
const stream = (text: string) => () => new Response(text, { headers: { "content-type": "text/event-stream" } });
const status =
  (code: number, headers: HeadersInit = {}) =>
  () =>
    new Response(null, { status: code, headers });
const page =
  (...seqs: number[]) =>
  () =>
    Response.json({ events: seqs.map((seq) => ({ seq, event: "turn" })) });
const cut = () => {
  throw new TypeError("network");
};
/** Holds the line after its first event, and says nothing more. */
const silent = () =>
  new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode(frame(1))) }), {
    headers: { "content-type": "text/event-stream" },
  });
const open: Slots = { withSlot: (work) => work() };
const none: Slots = { withSlot: async () => "no slot" };

afterEach(() => vi.unstubAllGlobals());

/** Plays the answers one after the other until the link ends; then tells what the page saw. */
function follow(answers: (() => Response)[], slots: Slots = open, stallMs = 1000) {
  return new Promise<{ seqs: number[]; states: string[]; urls: string[]; resets: number }>((done) => {
    const seen = { seqs: [] as number[], states: [] as string[], urls: [] as string[], resets: 0 };
    let next = 0;
    vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
      seen.urls.push(url);
      const response = answers[next++]?.() ?? new Response(null, { status: 204 });
      return abortable(response, init.signal);
    });
    followRun<Event>({
      url: "/e",
      after: 0,
      baseMs: 1,
      pollMs: 1,
      stallMs,
      slots,
      isTerminal: (event) => event.event === "end",
      onEvents: (batch) => seen.seqs.push(...batch.map((event) => event.seq)),
      onReset: () => {
        seen.resets += 1;
        seen.seqs.length = 0;
      },
      onState: (state: LinkState) => {
        seen.states.push(state.kind === "waiting" ? `waiting:${state.reason}` : state.kind);
        if (["ended", "fatal", "outdated"].includes(state.kind)) done(seen);
      },
    });
  });
}

/** A real body ends in an error when its request is aborted; that of a made-up response does not. */
function abortable(response: Response, signal: AbortSignal | null | undefined): Response {
  if (!response.body || !signal) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream({
    start: (controller) => signal.addEventListener("abort", () => controller.error(new DOMException("", "AbortError"))),
    async pull(controller) {
      const { value, done } = await reader.read();
      if (signal.aborted) return;
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

describe("the stream of a run", () => {
  it("goes on from its cursor after a cut and drops what it has seen", async () => {
    const seen = await follow([stream(frame(1) + frame(2)), stream(frame(2) + frame(3) + frame(4, "end"))]);
    expect(seen.seqs).toEqual([1, 2, 3, 4]);
    expect(seen.urls).toEqual(["/e?after=0", "/e?after=2"]);
  });

  it("connects again instead of showing a hole", async () => {
    const seen = await follow([stream(frame(1) + frame(3)), stream(frame(2) + frame(3, "end"))]);
    expect(seen.seqs).toEqual([1, 2, 3]);
  });

  it("waits longer each time while there is no server", async () => {
    const seen = await follow([cut, cut, stream(frame(1, "end"))]);
    expect(seen.states).toEqual(["connecting", "waiting:network", "waiting:network", "live", "ended"]);
  });

  it("tries at once whether a browser that says it is offline is right", async () => {
    vi.stubGlobal("navigator", { ...navigator, onLine: false });
    const offline = () => {
      setTimeout(() => dispatchEvent(new Event("offline")));
      return silent();
    };
    // A server on this machine answers all the same.
    const near = await follow([offline, stream(frame(2, "end"))]);
    expect(near.states).toEqual(["connecting", "live", "live", "ended"]);
    const far = await follow([offline, cut, stream(frame(2, "end"))]);
    expect(far.states).toEqual(["connecting", "live", "waiting:offline", "live", "ended"]);
    expect([near.seqs, far.seqs]).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it("tells finished from forbidden", async () => {
    expect((await follow([status(204)])).states.at(-1)).toBe("ended");
    expect((await follow([status(403)])).states.at(-1)).toBe("fatal");
    expect((await follow([status(404)])).states.at(-1)).toBe("fatal");
  });

  it("obeys a server that asks for patience", async () => {
    const seen = await follow([status(503, { "retry-after": "0" }), stream(frame(1, "end"))]);
    expect(seen.states).toEqual(["connecting", "waiting:throttled", "live", "ended"]);
  });

  it("starts anew where the server's log is shorter than the cursor", async () => {
    const seen = await follow([stream(frame(1) + frame(2)), status(409), stream(frame(1) + frame(2, "end"))]);
    expect([seen.seqs, seen.resets, seen.urls.at(-1)]).toEqual([[1, 2], 1, "/e?after=0"]);
  });

  it("connects again at once when the server says goodbye", async () => {
    const bye = `event: bye\ndata: {"reason":"max_age"}\n\n`;
    const seen = await follow([stream(frame(1) + bye), stream(frame(2, "end"))]);
    expect(seen.states).toEqual(["connecting", "live", "live", "ended"]);
  });

  it("says that the page is old where the server speaks another version", async () => {
    const seen = await follow([stream(`event: hello\ndata: {"schema":2}\n\n`)]);
    expect(seen.states.at(-1)).toBe("outdated");
  });

  it("notices a server that holds the line and says nothing", async () => {
    const seen = await follow([silent, stream(frame(2, "end"))], open, 30);
    expect(seen.states).toEqual(["connecting", "live", "waiting:stalled", "live", "ended"]);
  });

  it("polls where no slot is free, with the same guarantees", async () => {
    const seen = await follow([page(1, 2), page(), page(2, 3), status(204)], none);
    expect(seen.seqs).toEqual([1, 2, 3]);
    expect(seen.urls[1]).toBe("/e.json?after=2&limit=500");
  });
});
