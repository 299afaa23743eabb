// A run on screen: the server's snapshot, and later events applied as they arrive.
import { useCallback, useEffect, useRef, useState } from "react";
import { asProblem, get, type Problem } from "../api/client";
import type { EventEnvelope, RunView } from "../gen/run";
import { fold, forget, isOver, isTerminal } from "../model/reduce";
import { followRun, type LinkState } from "./stream";

export interface LiveRun {
  view: RunView | undefined;
  link: LinkState;
  problem: Problem | undefined;
  /** Loads the run again. */
  refresh: () => void;
  /** Reads again what only a snapshot has, such as whether the run is executed; undefined if that failed. */
  recheck: () => Promise<RunView["about"] | undefined>;
}

declare global {
  interface Window {
    /** The state of the page, for the console and for tests. */
    moothallView?: () => RunView | undefined;
  }
}

export function useRun(runId: string): LiveRun {
  const [view, setView] = useState<RunView>();
  const [link, setLink] = useState<LinkState>({ kind: "connecting" });
  const [problem, setProblem] = useState<Problem>();
  const [again, setAgain] = useState(0);
  const readAbout = useRef<LiveRun["recheck"]>(undefined);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `again` says when, not what
  useEffect(() => {
    const stop = new AbortController();
    const path = `/api/runs/${encodeURIComponent(runId)}`;
    let current: RunView | undefined;
    // The last event that `current.about` knows of.
    let aboutSeq = 0;
    let unfollow = () => {};
    const paint = perFrame(() => setView(current));
    window.moothallView = () => current;

    const recheck = async () => {
      try {
        const { about, as_of_seq } = await get<RunView>(path, stop.signal);
        aboutSeq = as_of_seq;
        if (current) current = { ...current, about };
        paint.soon();
        return about;
      } catch {
        return undefined;
      }
    };
    readAbout.current = recheck;

    const begin = (snapshot: RunView) => {
      current = snapshot;
      aboutSeq = snapshot.as_of_seq;
      setView(snapshot);
      setProblem(undefined);
      if (isOver(snapshot.status)) {
        setLink({ kind: "ended" });
        return;
      }
      let wasLost = false;
      unfollow = followRun<EventEnvelope>({
        url: `${path}/events`,
        after: snapshot.as_of_seq,
        isTerminal,
        onEvents: (batch) => {
          if (!current) return;
          current = fold(current, batch);
          // A run that writes events is being executed, whatever an older snapshot said. After a restart, events from
          // before it can arrive after the snapshot.
          if (!current.about.driven && current.as_of_seq > aboutSeq && !isOver(current.status))
            current = driven(current);
          paint.soon();
        },
        onReset: () => {
          if (current) current = forget(current);
        },
        onState: (state) => {
          setLink(state);
          if (state.kind === "waiting") wasLost = true;
          // After a restart the server may not execute the run, and a finished run has more to show; only a snapshot
          // has it.
          if ((state.kind === "live" && wasLost) || state.kind === "ended") {
            wasLost = false;
            void recheck();
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
          // Retry only if the server is unreachable.
          if (found.isOffline || found.status >= 500)
            setTimeout(() => stop.signal.aborted || load(attempt + 1), Math.min(8000, 500 * 2 ** attempt));
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
  const recheck = useCallback(async () => readAbout.current?.(), []);
  return { view, link, problem, refresh, recheck };
}

function driven(view: RunView): RunView {
  return { ...view, about: { ...view.about, driven: true } };
}

/** At most one call per frame; hidden tabs have no frames and use a timer. */
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
