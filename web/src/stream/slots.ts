// Over HTTP/1.1 a browser opens six connections to one server, for all tabs together. Six open streams and the seventh
// tab cannot even load its page. So at most four tabs stream at a time, and the others poll.

const SLOTS = 4;

export interface Slots {
  /** Runs the work while holding a slot; returns "no slot" if none is free. */
  withSlot<T>(work: () => Promise<T>): Promise<T | "no slot">;
}

/** Slots that tabs share by Web Locks; the browser frees one when its tab closes or crashes. */
export const webLockSlots: Slots = {
  async withSlot<T>(work: () => Promise<T>): Promise<T | "no slot"> {
    // Only in secure contexts: on plain HTTP beyond localhost every tab streams.
    if (!("locks" in navigator)) return work();
    for (let slot = 0; slot < SLOTS; slot += 1) {
      const result = await navigator.locks.request<Promise<{ done: T } | undefined>>(
        `moothall-sse-${slot}`,
        { ifAvailable: true },
        async (lock) => (lock ? { done: await work() } : undefined),
      );
      if (result) return result.done;
    }
    return "no slot";
  },
};
