// The calls of a run: all pages of the log, and later calls as they finish.
import { useEffect, useRef, useState } from "react";
import { asProblem, get, type Problem } from "../api/client";
import type { CallPage, ModelCall } from "../gen/api";

/** The first page is on screen sooner if it is small; it fills every screen. */
const FIRST = 250;
const NEXT = 2500;

/** How often a run in progress is asked for new calls. */
const EVERY_MS = 700;

export interface Calls {
  calls: readonly ModelCall[];
  /** The last page: it has the sums of all matching calls. */
  page: CallPage | undefined;
  problem: Problem | undefined;
}

const NOTHING: Calls = { calls: [], page: undefined, problem: undefined };

/**
 * `head` is the number of the run's last event: new calls are loaded when it grows. `isOver` is undefined until it is
 * known.
 */
export function useCalls(run: string, query: string, head: number, isOver: boolean | undefined): Calls {
  const [state, setState] = useState<Calls & { key: string }>({ ...NOTHING, key: "" });
  const loader = useRef<{ more: () => void; reload: () => void }>(undefined);
  const wasOver = useRef(isOver);
  const key = `${run}?${query}`;

  useEffect(() => {
    const stop = new AbortController();
    const path = `/api/runs/${encodeURIComponent(run)}/calls?${query}${query && "&"}`;
    let calls: ModelCall[] = [];
    let shown = 0;
    let busy = false;
    let again = false;
    // Pages loaded before this was set may not be added to the list.
    let restart = false;
    const load = async () => {
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      try {
        let more = true;
        while (more) {
          if (restart) calls = [];
          restart = false;
          const after = calls.at(-1)?.seq ?? 0;
          const limit = calls.length === 0 ? FIRST : NEXT;
          const page = await get<CallPage>(`${path}after=${after}&limit=${limit}`, stop.signal);
          if (restart) continue;
          calls = calls.concat(page.calls);
          more = page.next !== undefined;
          // While all calls are loaded again, the list never gets shorter.
          if (more && calls.length < shown) continue;
          shown = calls.length;
          setState({ calls, page, problem: undefined, key });
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        setState((before) => ({ ...(before.key === key ? before : NOTHING), problem: asProblem(error), key }));
      }
      // New events arrive faster than they need to be shown.
      await new Promise((done) => setTimeout(done, EVERY_MS));
      busy = false;
      if (again && !stop.signal.aborted) {
        again = false;
        void load();
      }
    };
    loader.current = {
      more: () => void load(),
      reload: () => {
        restart = true;
        void load();
      },
    };
    void load();
    return () => {
      stop.abort();
      loader.current = undefined;
    };
  }, [run, query, key]);

  useEffect(() => {
    const hasEnded = wasOver.current === false && isOver === true;
    wasOver.current = isOver;
    // The result of a call may change until the run has ended.
    if (hasEnded) loader.current?.reload();
    else if (head > 0 && isOver === false) loader.current?.more();
  }, [head, isOver]);

  // Another filter: what is on screen does not match it.
  return state.key === key ? state : { ...NOTHING, page: state.page };
}
