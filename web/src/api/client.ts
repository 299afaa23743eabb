// The server's API. Everything is on our own origin; the cookie travels by itself.

import type { ErrorCode, Problem as ProblemDocument } from "../gen/api";

/** The server's codes, and what happens before there is an answer of the server. */
type ProblemCode = ErrorCode | "offline" | "unknown";

/** An answer that is not what was asked for, as the server tells it. */
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

  /** No server answered at all. */
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

/**
 * The word that only a page of this server can know. A request that changes something carries it beside the cookie,
 * which a browser would send for a page of somebody else, too. Servers where nobody signs in have none.
 */
async function pageWord(): Promise<string | undefined> {
  try {
    const response = await fetch("/api/session", { credentials: "same-origin", cache: "no-store" });
    if (!response.ok) return undefined;
    const { page_word } = (await response.json()) as { page_word?: string | null };
    return page_word ?? undefined;
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
    throw new Problem(0, "offline", "The server does not answer.", "Is `moothall serve` still running?");
  }
  if (response.ok) return response;
  // The server's own page, which says how to come in.
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

export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "unknown", String(error));
}
