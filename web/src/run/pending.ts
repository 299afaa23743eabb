// Actions on a run that were requested and have not taken effect yet.
import { useEffect, useState } from "react";
import type { RunView } from "../gen/run";
import { isOver } from "../model/reduce";
import { isActive } from "../model/status";

export type Action = "pause" | "resume" | "cancel";

interface Request {
  what: Action;
  /** The last event when it was requested. */
  seq: number;
  /** Whether the run has been driven since. */
  driven: boolean;
}

export interface PendingAction {
  what: Action | undefined;
  /** Call it when an action is requested. */
  begin: (what: Action) => void;
  /** Call it when the server refused the action. */
  cancel: () => void;
}

/** How long a driver that fails at once may take; it sends no event. */
const RECHECK_MS = 5000;

/** A resumed run sends an event, unless its driver ends before the first one; the others change the state of the run. */
function isPending({ what, seq, driven }: Request, view: RunView): boolean {
  if (isOver(view.status)) return false;
  if (what === "resume") return view.as_of_seq <= seq && !(driven && !view.about.driven);
  return what === "cancel" || isActive(view);
}

/** The action in progress. `refresh` reads again whether the run is driven. */
export function usePending(view: RunView, refresh: () => void): PendingAction {
  const [asked, setAsked] = useState<Request>();
  const pending = asked && isPending(asked, view) ? asked : undefined;
  // Otherwise a pause would be pending again as soon as another user resumes the run.
  if (asked && !pending) setAsked(undefined);
  else if (asked && view.about.driven && !asked.driven) setAsked({ ...asked, driven: true });
  const isResuming = pending?.what === "resume";
  useEffect(() => {
    if (!isResuming) return;
    const timer = setInterval(refresh, RECHECK_MS);
    return () => clearInterval(timer);
  }, [isResuming, refresh]);
  return {
    what: pending?.what,
    begin: (what) => setAsked({ what, seq: view.as_of_seq, driven: false }),
    cancel: () => setAsked(undefined),
  };
}
