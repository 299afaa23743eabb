import { useCallback, useEffect, useRef, useState } from "react";
import { asProblem, get, getText, type Problem, readSession } from "./client";

export interface Got<T> {
  data: T | undefined;
  problem: Problem | undefined;
  reload: () => void;
}

/** The last responses: going back shows them while they are loaded again. */
const kept = new Map<string, unknown>();
const MOST_KEPT = 60;

/** Resources that many parts of a page request at the same time: requests within a moment are merged into one. */
const SHARED = new Set(["/api/settings", "/api/committees"]);
const SHARED_MS = 2000;
const shared = new Map<string, { at: number; response: Promise<unknown> }>();

function load<T>(path: string, as: "json" | "text", signal: AbortSignal): Promise<T> {
  if (as === "text") return getText(path, signal) as Promise<T>;
  if (path === "/api/session") return readSession() as Promise<T>;
  if (!SHARED.has(path)) return get<T>(path, signal);
  const known = shared.get(path);
  if (known && Date.now() - known.at < SHARED_MS) return known.response as Promise<T>;
  const response = get<T>(path);
  shared.set(path, { at: Date.now(), response });
  // A failure is not shared with later readers.
  response.catch(() => shared.delete(path));
  return response;
}

/**
 * Loads a resource; `null` loads nothing. A new `version` loads it again and keeps the old data until then. A request in
 * progress is not cancelled for that: versions may change faster than the server responds.
 */
export function useGet<T>(path: string | null, version: unknown = 0, as: "json" | "text" = "json"): Got<T> {
  const [state, setState] = useState<{ path: string | null; data: T | undefined; problem: Problem | undefined }>({
    path,
    data: path === null ? undefined : (kept.get(path) as T | undefined),
    problem: undefined,
  });
  const reader = useRef<{ read: () => void }>(undefined);

  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let busy = false;
    let again = false;
    const read = async () => {
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      try {
        const data = await load<T>(path, as, stop.signal);
        if (stop.signal.aborted) return;
        keep(path, data);
        setState({ path, data, problem: undefined });
      } catch (error) {
        if (stop.signal.aborted) return;
        setState((before) => ({
          path,
          data: before.path === path ? before.data : undefined,
          problem: asProblem(error),
        }));
      }
      busy = false;
      if (again) {
        again = false;
        void read();
      }
    };
    reader.current = { read };
    return () => {
      stop.abort();
      reader.current = undefined;
    };
  }, [path, as]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `version` says when to read, not what
  useEffect(() => {
    // In braces: React calls the return value of an effect, and this is a promise.
    reader.current?.read();
  }, [path, as, version]);

  const reload = useCallback(() => reader.current?.read(), []);
  if (state.path !== path)
    return { data: path === null ? undefined : (kept.get(path) as T | undefined), problem: undefined, reload };
  return { data: state.data, problem: state.problem, reload };
}

function keep(path: string, data: unknown): void {
  kept.delete(path);
  kept.set(path, data);
  if (kept.size > MOST_KEPT) for (const oldest of kept.keys()) return void kept.delete(oldest);
}
