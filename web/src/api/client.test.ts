import { afterEach, describe, expect, it, vi } from "vitest";
import { asProblem, forgetSession, get, post } from "./client";

afterEach(() => {
  vi.unstubAllGlobals();
  forgetSession();
});

/** Answers by path; tells which requests were made, with the headers that matter. */
function server(answers: Record<string, () => Response>) {
  const seen: [string, string | null][] = [];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    seen.push([path, new Headers(init.headers).get("x-moothall-page")]);
    return answers[path]?.() ?? new Response(null, { status: 404 });
  });
  return seen;
}

describe("requests to the server", () => {
  it("carry the page's word where they change something", async () => {
    const seen = server({
      "/api/session": () => Response.json({ page_word: "w0rd" }),
      "/api/runs": () => Response.json({ run_id: "x" }),
    });
    expect(await post("/api/runs", {})).toEqual({ run_id: "x" });
    expect(seen).toEqual([
      ["/api/session", null],
      ["/api/runs", "w0rd"],
    ]);
  });

  it("carry no word where nobody signs in", async () => {
    const seen = server({ "/api/runs": () => Response.json({ run_id: "x" }) });
    await post("/api/runs", {});
    expect(seen.at(-1)).toEqual(["/api/runs", null]);
  });

  it("say what the server says when it refuses", async () => {
    server({ "/api/x": () => Response.json({ code: "run-busy", detail: "why", hint: "do" }, { status: 409 }) });
    const problem = asProblem(await get("/api/x").catch((error: unknown) => error));
    expect([problem.status, problem.code, problem.message, problem.hint]).toEqual([409, "run-busy", "why", "do"]);
  });

  it("tell a server that is away from one that refuses", async () => {
    vi.stubGlobal("fetch", async () => {
      throw new TypeError("network");
    });
    expect(asProblem(await get("/api/x").catch((error: unknown) => error)).isOffline).toBe(true);
  });
});
