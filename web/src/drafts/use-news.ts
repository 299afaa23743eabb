import { useEffect, useState } from "react";
import { webLockSlots } from "../stream/slots";

const NEWS = [
  "draft_ready",
  "draft_accepted",
  "draft_rejected",
  "draft_escalated",
  "draft_conflict",
  "drafts_changed",
] as const;

/** Polling interval in case the stream was cut without an error. */
const WITH_STREAM_MS = 15_000;
const WITHOUT_MS = 3_000;

/**
 * A number that grows whenever drafts are worth another look. What is shown is always read from the server; an event
 * only says when, so a missed one costs a moment and nothing else. That is why the browser's own EventSource will do.
 */
export function useDraftNews(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const look = () => setVersion((before) => before + 1);
    let pause = WITHOUT_MS;
    let timer: ReturnType<typeof setTimeout>;
    const again = () => {
      timer = setTimeout(() => {
        if (!document.hidden) look();
        again();
      }, pause);
    };
    again();
    void webLockSlots.withSlot(
      () =>
        new Promise<void>((done) => {
          if (stop.signal.aborted) return done();
          const source = new EventSource("/api/drafts/events");
          // Events during a disconnect are not sent again.
          source.onopen = () => {
            pause = WITH_STREAM_MS;
            look();
          };
          source.onerror = () => {
            pause = WITHOUT_MS;
          };
          for (const name of NEWS) source.addEventListener(name, look);
          stop.signal.addEventListener("abort", () => {
            source.close();
            done();
          });
        }),
    );
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
  return version;
}
