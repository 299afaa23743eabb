import type { Scope, SessionInfo } from "../gen/api";
import { useGet } from "./use-get";

/** Whether the signed-in user has this scope; `undefined` while loading. */
export function useMay(scope: Scope): boolean | undefined {
  const scopes = useGet<SessionInfo>("/api/session").data?.scopes;
  return scopes && (scopes.includes(scope) || scopes.includes("admin"));
}
