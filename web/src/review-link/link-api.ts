// Requests of the review page. They send the token of the link in the body, and no cookie: the holder of a link need not
// be signed in, and a session of the same browser must not decide.

import { Problem } from "../api/client";
import type { DraftReviewResponse, Problem as ProblemDocument, ReviewLinkDetail } from "../gen/api";

export type Decision = "approve" | "reject" | "send_back";

/** The token of the link; empty without one. */
export function readToken(): string {
  return location.hash.slice(1);
}

/** Removes the token from the address, so that it stays neither in the history nor on the screen. */
export function hideToken(): void {
  if (location.hash !== "") history.replaceState(history.state, "", location.pathname);
}

export function showDraft(token: string): Promise<ReviewLinkDetail> {
  return send("show", { token });
}

export function decide(token: string, decision: Decision, reason: string): Promise<DraftReviewResponse> {
  return send("decide", { token, decision, reason });
}

async function send<T>(path: string, body: unknown): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/review-link/${path}`, {
      method: "POST",
      credentials: "omit",
      cache: "no-store",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, "offline", "Can't reach the server.", "Check your connection and try again.");
  }
  if (response.ok) return (await response.json()) as T;
  const problem = (await response.json().catch(() => ({}))) as Partial<ProblemDocument>;
  const message = problem.detail ?? `The server answered ${response.status}.`;
  throw new Problem(response.status, problem.code ?? "unknown", message, problem.hint);
}
