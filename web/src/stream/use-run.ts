// A run on screen: the server's snapshot, and the events behind it folded in as they come.
import { useCallback, useEffect, useState } from "react";
import { asProblem, get, type Problem } from "../api/client";
import type { Envelope, RunView } from "../gen/run";
import { fold, forget, isOver, isTerminal } from "../model/reduce";
import { followRun, type LinkState } from "./stream";

export interface LiveRun {
  view: RunView | undefined;
  link: LinkState;
  problem: Problem | undefined;
  /** When the view last changed by an event or a snapshot; for "as of". */
  refresh: () => void;
}

declare global {
  interface Window {
    /** What this page believes of the run it shows: for whoever looks into the console, and for tests. */
    moothallView?: () => RunView | undefined;
  }
}

export function useRun(runId: string): LiveRun {
  const [view, setView] = useState<RunView>();
  const [link, setLink] = useState<LinkState>({ kind: "connecting" });
  const [problem, setProblem] = useState<Problem>();
  const [again, setAgain] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `again` says when, not what
  useEffect(() => {
    const stop = new AbortController();
    const path = `/api/runs/${encodeURIComponent(runId)}`;
    let current: RunView | undefined;
    let unfollow = () => {};
    const paint = perFrame(() => setView(current));
    window.moothallView = () => current;

    const begin = (snapshot: RunView) => {
      current = snapshot;
      setView(snapshot);
      setProblem(undefined);
      if (isOver(snapshot.status)) {
        setLink({ kind: "ended" });
        return;
      }
      let wasLost = false;
      unfollow = followRun<Envelope>({
        url: `${path}/events`,
        after: snapshot.as_of_seq,
        isTerminal,
        onEvents: (batch) => {
          if (!current) return;
          current = fold(current, batch);
          // Whoever sends events drives the run, whatever the snapshot said.
          if (!current.about.driven && !isOver(current.status)) current = driven(current);
          paint.soon();
        },
        onReset: () => {
          if (current) current = forget(current);
        },
        onState: (state) => {
          setLink(state);
          if (state.kind === "waiting") wasLost = true;
          // A server that came back may not drive the run any more; only a snapshot says so.
          if (state.kind === "live" && wasLost) {
            wasLost = false;
            void get<RunView>(path, stop.signal).then(
              (fresh) => {
                if (!current) return;
                current = { ...current, about: fresh.about };
                paint.soon();
              },
              () => {},
            );
          }
        },
      });
    };

    const load = (attempt: number) => {
      get<RunView>(path, stop.signal).then(
        (snapshot) => stop.signal.aborted || begin(snapshot),
        (error) => {
          if (stop.signal.aborted) return;
          const found = asProblem(error);
          setProblem(found);
          // A server that is away comes back; everything else is an answer.
          if (found.isOffline || found.status >= 500) setTimeout(() => stop.signal.aborted || load(attempt + 1), Math.min(8000, 500 * 2 ** attempt));
        },
      );
    };
    load(0);
    return () => {
      stop.abort();
      unfollow();
      paint.stop();
      delete window.moothallView;
    };
  }, [runId, again]);

  const refresh = useCallback(() => setAgain((count) => count + 1), []);
  return { view, link, problem, refresh };
}

function driven(view: RunView): RunView {
  return { ...view, about: { ...view.about, driven: true } };
}

/** At most one call per frame; a hidden tab has no frames, so a timer stands in. */
function perFrame(work: () => void): { soon: () => void; stop: () => void } {
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = 0;
    timer = undefined;
    work();
  };
  return {
    soon: () => {
      if (timer !== undefined) return;
      frame = requestAnimationFrame(run);
      timer = setTimeout(run, 250);
    },
    stop: () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    },
  };
}
