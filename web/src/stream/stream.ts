// Follows the events of one run: a stream where the browser has a connection to spare, polling where it has not.
//
// Why not EventSource: it cannot tell "finished" from "forbidden", retries at a fixed pace, notices no half-dead server
// and hides heartbeats. What must stay true: events reach `onEvents` in order, once each and without a gap.
import { createParser } from "eventsource-parser";
import { type Slots, webLockSlots } from "./slots";

export interface Sequenced {
  seq: number;
}

/** `offline` if the browser reports it, else `network`. */
export type WaitReason = "network" | "offline" | "stalled" | "server" | "throttled";

export type LinkState =
  | { kind: "connecting" }
  | { kind: "live"; by: "stream" | "poll" }
  | { kind: "waiting"; attempt: number; retryInMs: number; reason: WaitReason }
  /** The tab is hidden: its connection is given to others. */
  | { kind: "paused" }
  | { kind: "ended" }
  /** 401, 403, 404, 410: trying again cannot help. */
  | { kind: "fatal"; status: number }
  /** The server's event schema is newer than this page. */
  | { kind: "outdated" };

export interface FollowOptions<E extends Sequenced> {
  /** Without the query: `/api/runs/7f3a/events`. */
  url: string;
  after: number;
  isTerminal: (event: E) => boolean;
  /** In order, without repetition, one call per network chunk. */
  onEvents: (batch: E[]) => void;
  onState: (state: LinkState) => void;
  /** The server's log is shorter than our cursor: forget everything, events come again from the first. */
  onReset: () => void;
  /** More than twice the server's heartbeat. */
  stallMs?: number;
  pollMs?: number;
  hiddenGraceMs?: number;
  baseMs?: number;
  maxMs?: number;
  random?: () => number;
  slots?: Slots;
}

/** The version of the wire contract that this page speaks. */
const SCHEMA = 1;
const FATAL = [401, 403, 404, 410];
const POLL_LIMIT = 500;

type Outcome =
  | { kind: "ended" }
  | { kind: "fatal"; status: number }
  | { kind: "outdated" }
  | { kind: "reset" }
  /** No error: reconnect immediately. */
  | { kind: "again" }
  | { kind: "later"; reason: WaitReason; floorMs?: number };

export function followRun<E extends Sequenced>(options: FollowOptions<E>): () => void {
  const stop = new AbortController();
  void new Follower(options, stop.signal).run();
  return () => stop.abort();
}

class Follower<E extends Sequenced> {
  private cursor: number;
  private attempt = 0;
  private baseMs: number;
  private readonly o: FollowOptions<E>;
  private readonly stop: AbortSignal;
  private readonly slots: Slots;

  constructor(o: FollowOptions<E>, stop: AbortSignal) {
    this.o = o;
    this.stop = stop;
    this.cursor = o.after;
    this.baseMs = o.baseMs ?? 500;
    this.slots = o.slots ?? webLockSlots;
  }

  async run(): Promise<void> {
    this.say({ kind: "connecting" });
    while (!this.stop.aborted) {
      if (document.hidden && this.attempt > 0) {
        this.say({ kind: "paused" });
        await this.visible();
      }
      const outcome = await this.once();
      if (this.stop.aborted) return;
      switch (outcome.kind) {
        case "ended":
        case "fatal":
        case "outdated":
          this.say(outcome);
          return;
        case "reset":
          this.cursor = 0;
          this.o.onReset();
          break;
        case "again":
          break;
        case "later":
          await this.wait(outcome.reason, outcome.floorMs ?? 0);
          break;
      }
    }
  }

  /** One connection, as long as it lasts. */
  private async once(): Promise<Outcome> {
    const streamed = await this.slots.withSlot(() => this.stream());
    if (streamed !== "no slot") return streamed;
    const polled = await this.poll();
    if (polled.kind !== "again") return polled;
    await sleep(this.o.pollMs ?? 1500, this.stop);
    return polled;
  }

  private async stream(): Promise<Outcome> {
    const ctl = new AbortController();
    const abort = () => ctl.abort();
    this.stop.addEventListener("abort", abort);
    const hidden = this.onHidden(abort);
    let stalled = false;
    let dog: ReturnType<typeof setTimeout> | undefined;
    const pet = () => {
      clearTimeout(dog);
      dog = setTimeout(() => {
        stalled = true;
        ctl.abort();
      }, this.o.stallMs ?? 40_000);
    };
    let doubted = false;
    const doubt = () => {
      doubted = true;
      ctl.abort();
    };
    addEventListener("offline", doubt);
    try {
      pet();
      const response = await fetch(`${this.o.url}?after=${this.cursor}`, {
        headers: { accept: "text/event-stream" },
        cache: "no-store",
        signal: ctl.signal,
      });
      const refused = refusal(response);
      if (refused) return refused;
      if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream"))
        return { kind: "later", reason: "server" };
      this.say({ kind: "live", by: "stream" });
      return await this.read(response.body, pet, ctl);
    } catch {
      if (hidden.happened) {
        this.say({ kind: "paused" });
        await this.visible();
        return { kind: "again" };
      }
      // A dead connection is silent for long; a new one shows immediately whether the browser is right.
      if (doubted) return { kind: "again" };
      return { kind: "later", reason: stalled ? "stalled" : unreachable() };
    } finally {
      clearTimeout(dog);
      hidden.off();
      removeEventListener("offline", doubt);
      this.stop.removeEventListener("abort", abort);
    }
  }

  private async read(body: ReadableStream<Uint8Array>, pet: () => void, ctl: AbortController): Promise<Outcome> {
    let batch: E[] = [];
    let end: Outcome | undefined;
    const parser = createParser({
      maxBufferSize: 4 << 20,
      onRetry: (ms) => {
        this.baseMs = Math.min(Math.max(ms, 250), this.o.maxMs ?? 30_000);
      },
      onEvent: (message) => {
        if (end) return;
        const event = JSON.parse(message.data) as E;
        if (message.event === "hello" && (event as { schema?: number }).schema !== SCHEMA) end = { kind: "outdated" };
        if (message.event === "bye") end = { kind: "again" };
        // Without a number it is ephemeral: never replayed, and may be lost.
        if (!Number.isInteger(event.seq)) return;
        end = this.take(event, batch);
      },
    });
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (value !== undefined) {
        pet();
        parser.feed(value);
        if (batch.length > 0) {
          this.attempt = 0;
          this.o.onEvents(batch);
          batch = [];
        }
      }
      if (end) {
        ctl.abort();
        return end;
      }
      if (done) return { kind: "later", reason: "server" };
    }
  }

  /** The same events by plain requests, for tabs that got no slot. */
  private async poll(): Promise<Outcome> {
    try {
      const limit = AbortSignal.timeout(this.o.stallMs ?? 40_000);
      const response = await fetch(`${this.o.url}.json?after=${this.cursor}&limit=${POLL_LIMIT}`, {
        cache: "no-store",
        signal: AbortSignal.any([this.stop, limit]),
      });
      const refused = refusal(response);
      if (refused) return refused;
      const events = eventsOf<E>(await response.json());
      this.say({ kind: "live", by: "poll" });
      const batch: E[] = [];
      let end: Outcome | undefined;
      for (const event of events) end ??= this.take(event, batch);
      if (batch.length > 0) {
        this.attempt = 0;
        this.o.onEvents(batch);
      }
      // A full page: there is more already.
      if (!end && events.length === POLL_LIMIT) return this.poll();
      return end ?? { kind: "again" };
    } catch {
      return { kind: "later", reason: unreachable() };
    }
  }

  /** Puts an event into the batch if it is the next one. */
  private take(event: E, batch: E[]): Outcome | undefined {
    if (event.seq <= this.cursor) return undefined;
    // A gap: what is missing comes with the next connection. A hole is never shown.
    if (event.seq !== this.cursor + 1) return { kind: "later", reason: "server" };
    this.cursor = event.seq;
    batch.push(event);
    return this.o.isTerminal(event) ? { kind: "ended" } : undefined;
  }

  private async wait(reason: WaitReason, floorMs: number): Promise<void> {
    const cap = Math.min(this.o.maxMs ?? 30_000, this.baseMs * 2 ** this.attempt);
    const jitter = (this.o.random ?? Math.random)();
    const retryInMs = Math.max(floorMs, Math.round(cap / 2 + (jitter * cap) / 2));
    this.attempt += 1;
    this.say({ kind: "waiting", attempt: this.attempt, retryInMs, reason });
    await Promise.race([sleep(retryInMs, this.stop), once(window, "online", this.stop)]);
  }

  private say(state: LinkState): void {
    if (!this.stop.aborted) this.o.onState(state);
  }

  private onHidden(then: () => void): { happened: boolean; off: () => void } {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = {
      happened: false,
      off: () => {
        clearTimeout(timer);
        document.removeEventListener("visibilitychange", changed);
      },
    };
    const changed = () => {
      clearTimeout(timer);
      if (!document.hidden) return;
      timer = setTimeout(() => {
        watch.happened = true;
        then();
      }, this.o.hiddenGraceMs ?? 30_000);
    };
    document.addEventListener("visibilitychange", changed);
    return watch;
  }

  private async visible(): Promise<void> {
    while (document.hidden && !this.stop.aborted) await once(document, "visibilitychange", this.stop);
  }
}

/**
 * Why a request failed. A local server also responds to browsers that report to be offline.
 */
function unreachable(): WaitReason {
  return navigator.onLine ? "network" : "offline";
}

function refusal(response: Response): Outcome | undefined {
  const { status } = response;
  if (status === 204) return { kind: "ended" };
  if (status === 409) return { kind: "reset" };
  if (FATAL.includes(status)) return { kind: "fatal", status };
  if (status === 429 || status === 503) {
    const seconds = Number(response.headers.get("retry-after") ?? 1);
    return { kind: "later", reason: "throttled", floorMs: 1000 * (Number.isFinite(seconds) ? seconds : 1) };
  }
  return response.ok ? undefined : { kind: "later", reason: "server" };
}

/** A page of events: a list, or an object that holds one. */
function eventsOf<E>(body: unknown): E[] {
  if (Array.isArray(body)) return body as E[];
  const { events } = body as { events?: unknown };
  return Array.isArray(events) ? (events as E[]) : [];
}

function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    stop.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        done();
      },
      { once: true },
    );
  });
}

function once(target: EventTarget, name: string, stop: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const finish = () => {
      target.removeEventListener(name, finish);
      stop.removeEventListener("abort", finish);
      done();
    };
    target.addEventListener(name, finish);
    stop.addEventListener("abort", finish);
  });
}
