// The place on a run's page. It is kept in the address, which makes links show the same view.
import { useCallback, useMemo } from "react";
import type { ConsultView, RunView } from "../gen/run";
import { moveState, seats } from "../model/select";
import { useAddress } from "../ui/use-address";

export interface Place {
  /** 0 to 4, or nothing when zoomed out to the whole run. */
  layer: number | undefined;
  move: string | undefined;
  /** Whether the address names the move; otherwise the page chose it. */
  chosen: boolean;
  thread: string;
  go: (change: Partial<Record<"layer" | "move" | "thread" | "fact" | "doc", string | null>>, how?: "replace") => void;
}

export function usePlace(view: RunView, consult: ConsultView): Place {
  const [params, change] = useAddress();
  const go = useCallback<Place["go"]>(
    (changes, how) => change(changes, { replace: how === "replace", preventScrollReset: true }),
    [change],
  );
  return useMemo(() => {
    const named = params.get("move");
    const known = consult.moves.find((one) => one.move_id === named);
    const ids = seats(view);
    const thread = params.get("thread");
    return {
      layer: layerOf(params.get("layer"), consult),
      move: known?.move_id ?? usualMove(view, consult),
      chosen: known !== undefined,
      thread: thread !== null && ids.includes(thread) ? thread : (ids[0] ?? "D1"),
      go,
    };
  }, [params, consult, view, go]);
}

/** The stage in the address, or the current stage of the run. */
function layerOf(named: string | null, consult: ConsultView): number | undefined {
  if (named === "all") return undefined;
  if (named !== null && /^[0-4]$/.test(named)) return Number(named);
  const now = consult.layers.findLast((layer) => layer.state !== "waiting")?.layer ?? 0;
  return Math.min(now, 3);
}

function usualMove(view: RunView, consult: ConsultView): string | undefined {
  const live = consult.moves.find((one) => moveState(one, view) === "live");
  return live?.move_id ?? consult.recommended[0] ?? consult.moves[0]?.move_id;
}
