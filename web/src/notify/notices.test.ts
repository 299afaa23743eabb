import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { RunStatus, RunVerdict, RunView } from "../gen/run";
import { noticeOf, runTitle } from "./notices";

const half = JSON.parse(readFileSync(join(import.meta.dirname, "../../fixtures/view-half.json"), "utf8")) as RunView;

const as = (status: RunStatus, driven = true): RunView => ({
  ...half,
  status,
  about: { ...half.about, driven },
});

describe("the title of a tab", () => {
  it("shows progress while the run is executed, and its status otherwise", () => {
    expect(runTitle(as({ state: "running" }))).toMatch(/^\[\d+ %\] HLXI · Moothall$/);
    expect(runTitle(as({ state: "running" }, false))).toBe("Interrupted: HLXI · Moothall");
    expect(runTitle(as({ state: "paused", reason: "question", detail: "x" }))).toBe("Needs you: HLXI · Moothall");
    expect(runTitle(as({ state: "complete", verdict: "pass" }))).toBe("Finished: HLXI · Moothall");
  });
});

describe("a notification", () => {
  it("is due when a run ends or needs a person, and not while it runs", () => {
    expect(noticeOf(as({ state: "running" }))).toBeUndefined();
    expect(noticeOf(as({ state: "paused", reason: "question", detail: "x" }))?.title).toBe("HLXI needs you");
    expect(noticeOf(as({ state: "failed", detail: "no key" }))).toEqual({ title: "HLXI failed", body: "no key" });
    expect(noticeOf(as({ state: "cancelled" }))?.title).toBe("HLXI was stopped");
  });

  it("says how a complete run ended", () => {
    const title = (verdict: RunVerdict) => noticeOf(as({ state: "complete", verdict }))?.title;
    expect(title("pass")).toBe("HLXI has finished");
    expect(title("needs-person")).toBe("HLXI needs review");
    expect(title("fail")).toBe("HLXI did not pass");
  });
});
