// Actions on a run that were requested and have not taken effect yet.
import { useEffect, useState } from "react";
import type { RunView } from "../gen/run";
import { isOver } from "../model/reduce";
import { isActive } from "../model/status";

export type Action = "pause" | "resume" | "cancel";

/** Reads again whether the run is executed; undefined if the server does not say. */
export type Recheck = () => Promise<RunView["about"] | undefined>;

interface Request {
  what: Action;
  /** The last event when it was requested. */
  seq: number;
  /** Whether the server has accepted it. */
  accepted: boolean;
}

export interface PendingAction {
  what: Action | undefined;
  /** Requests an action with `send`; throws if the server refuses it. */
  request: (what: Action, send: () => Promise<unknown>) => Promise<void>;
}

/** How long an accepted action may take before it is asked whether anything still executes the run. */
const RECHECK_MS = 5000;

/** A resumed run sends an event; the other actions change the state of the run. */
function isPending({ what, seq }: Request, view: RunView): boolean {
  if (isOver(view.status)) return false;
  if (what === "resume") return view.as_of_seq <= seq;
  return what === "cancel" || isActive(view);
}

/** The action in progress. */
export function usePending(view: RunView, recheck: Recheck): PendingAction {
  const [asked, setAsked] = useState<Request>();
  const pending = asked && isPending(asked, view) ? asked : undefined;
  // Otherwise a pause would be pending again as soon as another user resumes the run.
  if (asked && !pending) setAsked(undefined);

  // A process that ends without an event leaves the action without effect, and the person must be able to repeat it.
  useEffect(() => {
    if (!pending?.accepted) return;
    let timer: ReturnType<typeof setTimeout>;
    let isCurrent = true;
    const check = async () => {
      const about = await recheck();
      if (!isCurrent) return;
      if (about && !about.driven) setAsked(undefined);
      else timer = setTimeout(check, RECHECK_MS);
    };
    timer = setTimeout(check, RECHECK_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [pending, recheck]);

  const request = async (what: Action, send: () => Promise<unknown>) => {
    const own: Request = { what, seq: view.as_of_seq, accepted: false };
    setAsked(own);
    try {
      await send();
    } catch (error) {
      setAsked((now) => (now === own ? pending : now));
      throw error;
    }
    setAsked((now) => (now === own ? { ...own, accepted: true } : now));
    void recheck();
  };
  return { what: pending?.what, request };
}
