// Client of the server's API. All requests are same-origin; the browser adds the session cookie.

import type { ErrorCode, Problem as ProblemDocument, SessionInfo } from "../gen/api";

/** The server's error codes, and codes for requests without a response from the server. */
type ProblemCode = ErrorCode | "offline" | "unknown";

/** An error response of the server (RFC 9457). */
export class Problem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  readonly hint: string | undefined;

  constructor(status: number, code: ProblemCode, message: string, hint?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }

  /** No response was received. */
  get isOffline(): boolean {
    return this.status === 0;
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, { signal: signal ?? null })).json() as Promise<T>;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await send(path, { signal: signal ?? null })).text();
}

export async function post<T>(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<T> {
  const word = await pageWord();
  const response = await send(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...(word && { "x-moothall-page": word }), ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return (text === "" ? {} : JSON.parse(text)) as T;
}

/** Requests for the session within a moment are one: many parts of a page ask for it at once. */
const SESSION_MS = 2000;
let session: { at: number; response: Promise<SessionInfo> } | undefined;

export function readSession(): Promise<SessionInfo> {
  if (session && Date.now() - session.at < SESSION_MS) return session.response;
  const response = get<SessionInfo>("/api/session");
  session = { at: Date.now(), response };
  response.catch(forgetSession);
  return response;
}

export function forgetSession(): void {
  session = undefined;
}

/**
 * A CSRF token: requests that change something send it in addition to the cookie, which browsers also send for other
 * sites' pages. Servers without sign-in have none.
 */
async function pageWord(): Promise<string | undefined> {
  try {
    return (await readSession()).page_word ?? undefined;
  } catch {
    return undefined;
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "offline", "Can't reach the server.", "Check that `moothall serve` is running.");
  }
  if (response.ok) return response;
  // The server's sign-in page.
  if (response.status === 401) location.assign("/login");
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    const body = (await response.json()) as Partial<ProblemDocument>;
    const message = body.detail ?? body.title ?? `The server answered ${response.status}.`;
    return new Problem(response.status, body.code ?? "unknown", message, body.hint);
  } catch {
    return new Problem(response.status, "unknown", `The server answered ${response.status}.`);
  }
}

/** A problem in one line: the server writes neither full stops nor capital letters. */
export function problemWords({ message, hint }: Pick<Problem, "message" | "hint">): string {
  if (!hint) return message;
  const stop = /[.!?:…]$/.test(message) ? "" : ".";
  return `${message}${stop} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}`;
}

export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "unknown", String(error));
}
