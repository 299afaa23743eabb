import { useCallback } from "react";
import { type NavigateOptions, useSearchParams } from "react-router";

/** Changes values of the address; an empty value removes its name. */
export type ChangeAddress = (changes: Record<string, string | null | undefined>, options?: NavigateOptions) => void;

/** The query of the address now. The parameters of the last render can be older, for example when a key is held down. */
export function addressNow(): URLSearchParams {
  return new URLSearchParams(location.search);
}

/**
 * The query of the address as state. A change starts from the address itself, because two changes in quick succession would
 * undo each other.
 */
export function useAddress(): [URLSearchParams, ChangeAddress] {
  const [params, setParams] = useSearchParams();
  const change = useCallback<ChangeAddress>(
    (changes, options) => {
      const next = addressNow();
      for (const [name, value] of Object.entries(changes))
        if (value === null || value === undefined || value === "") next.delete(name);
        else next.set(name, value);
      setParams(next, { replace: true, ...options });
    },
    [setParams],
  );
  return [params, change];
}
