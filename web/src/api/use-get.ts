import { useCallback, useEffect, useState } from "react";
import { asProblem, get, getText, type Problem } from "./client";

export interface Got<T> {
  data: T | undefined;
  problem: Problem | undefined;
  reload: () => void;
}

/** What was read last, so that going back shows it at once while it is read again. */
const kept = new Map<string, unknown>();
const MOST_KEPT = 60;

/** Reads a resource; `null` reads nothing. `version` reads it again whenever it changes, keeping what was shown. */
export function useGet<T>(path: string | null, version: unknown = 0, as: "json" | "text" = "json"): Got<T> {
  const [state, setState] = useState<{ path: string | null; data: T | undefined; problem: Problem | undefined }>({
    path,
    data: path === null ? undefined : (kept.get(path) as T | undefined),
    problem: undefined,
  });
  const [again, setAgain] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `version` and `again` say when to read, not what
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const read = as === "json" ? get<T>(path, stop.signal) : (getText(path, stop.signal) as Promise<T>);
    read.then(
      (data) => {
        if (stop.signal.aborted) return;
        keep(path, data);
        setState({ path, data, problem: undefined });
      },
      (error) => {
        if (!stop.signal.aborted) setState((before) => ({ path, data: before.path === path ? before.data : undefined, problem: asProblem(error) }));
      },
    );
    return () => stop.abort();
  }, [path, version, again, as]);
  const reload = useCallback(() => setAgain((count) => count + 1), []);
  if (state.path !== path)
    return { data: path === null ? undefined : (kept.get(path) as T | undefined), problem: undefined, reload };
  return { data: state.data, problem: state.problem, reload };
}

function keep(path: string, data: unknown): void {
  kept.delete(path);
  kept.set(path, data);
  if (kept.size > MOST_KEPT) for (const oldest of kept.keys()) return void kept.delete(oldest);
}
