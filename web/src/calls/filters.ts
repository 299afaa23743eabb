// The filters of the call log. They are kept in the address, so a link shows the same calls.
import { useCallback, useMemo } from "react";
import { useAddress } from "../ui/use-address";

export const FILTERS = ["role", "stage", "move", "round", "model", "result", "retries", "text"] as const;
export type FilterName = (typeof FILTERS)[number];
export type Filters = Partial<Record<FilterName, string>>;
export type SortKey = "time" | "length" | "cost" | "tokens";

const SORTS: readonly SortKey[] = ["time", "length", "cost", "tokens"];

export interface CallPlace {
  filters: Filters;
  /** The filters as a query of the API. */
  query: string;
  sort: SortKey;
  /** The call whose details are open. */
  call: string | undefined;
  change: (change: Partial<Record<FilterName | "sort" | "call", string | null>>) => void;
  clear: () => void;
}

export function useCallPlace(): CallPlace {
  const [params, changeAddress] = useAddress();
  const change = useCallback<CallPlace["change"]>(
    (changes) => changeAddress(changes, { preventScrollReset: true }),
    [changeAddress],
  );
  const clear = useCallback(() => change(Object.fromEntries(FILTERS.map((name) => [name, null]))), [change]);
  const query = FILTERS.flatMap((name) => {
    const value = params.get(name);
    return value ? [`${name}=${encodeURIComponent(value)}`] : [];
  }).join("&");
  const filters = useMemo(() => Object.fromEntries(new URLSearchParams(query)) as Filters, [query]);
  const sort = SORTS.find((one) => one === params.get("sort")) ?? "time";
  return { filters, query, sort, call: params.get("call") ?? undefined, change, clear };
}

/** The address of the calls of a run, filtered. */
export function callsPath(run: string, filters: Filters & { sort?: SortKey } = {}): string {
  const query = new URLSearchParams(filters).toString();
  return `/runs/${run}/calls${query && `?${query}`}`;
}
