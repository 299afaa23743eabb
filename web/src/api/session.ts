import type { Scope, Session } from "../gen/api";
import { useGet } from "./use-get";

/** Whether whoever looks at this page may do something; `undefined` while nobody knows. */
export function useMay(scope: Scope): boolean | undefined {
  const scopes = useGet<Session>("/api/session").data?.scopes;
  return scopes && (scopes.includes(scope) || scopes.includes("admin"));
}
