import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EventEnvelope, RunView } from "../gen/run";
import { fold, forget } from "./reduce";

const file = (name: string) => readFileSync(join(import.meta.dirname, "../../fixtures", name), "utf8");
const json = (name: string) => JSON.parse(file(name)) as RunView;
const events = (name: string) =>
  file(name)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as EventEnvelope);

/** `moothall-core` wrote these files with its own fold; this one must come to the same. */
const RUNS: [string, string][] = [
  ["run.ndjson", "view.json"],
  ["paused.ndjson", "paused-view.json"],
  ["cancelled.ndjson", "cancelled-view.json"],
  ["failed.ndjson", "failed-view.json"],
];

describe("the fold of events", () => {
  it.each(RUNS)("comes to what the server comes to: %s", (log, expected) => {
    const view = json(expected);
    expect(fold(forget(view), events(log))).toEqual(view);
  });

  it("comes to the same from any snapshot in between", () => {
    const half = json("view-half.json");
    const all = events("run.ndjson");
    expect(fold(forget(half), all.slice(0, half.as_of_seq))).toEqual(half);
    const rest = all.filter((event) => event.seq > half.as_of_seq);
    expect({ ...fold(half, rest), about: null }).toEqual({ ...json("view.json"), about: null });
  });

  it("counts nothing twice where events come again", () => {
    const view = json("view.json");
    const all = events("run.ndjson");
    const twice = fold(fold(forget(view), all.slice(0, 300)), all.slice(100));
    expect(twice).toEqual(view);
  });

  it("does not change the view that it was given", () => {
    const half = json("view-half.json");
    const before = structuredClone(half);
    fold(half, events("run.ndjson"));
    expect(half).toEqual(before);
  });

  it("ignores events that it does not know", () => {
    const half = json("view-half.json");
    const unknown = { seq: half.as_of_seq + 1, run_id: "x", at: half.updated_at, type: "from_the_future" };
    const after = fold(half, [unknown as unknown as EventEnvelope]);
    expect(after.consult).toEqual(half.consult);
  });

  it("shares the moves that a batch does not touch", () => {
    const half = json("view-half.json");
    const touched = events("run.ndjson").find((event) => event.seq > half.as_of_seq && event.type === "sandbox_turn");
    if (touched?.type !== "sandbox_turn") throw new Error("the fixture has no turn after its half");
    const after = fold({ ...half, as_of_seq: touched.seq - 1 }, [touched]);
    const same = half.consult?.moves.filter((one, i) => after.consult?.moves[i] === one).length;
    expect(same).toBe((half.consult?.moves.length ?? 0) - 1);
  });

  it("folds a whole run in less than fifty milliseconds", () => {
    const view = json("view.json");
    const all = events("run.ndjson");
    // The budget is for a whole run of about 2,200 events, one chunk of the network at a time. The best of a few
    // tries: the machine may be busy with something else.
    const tries = Array.from({ length: 8 }, () => {
      const begun = performance.now();
      let folded = forget(view);
      for (let from = 0; from < all.length; from += 20) folded = fold(folded, all.slice(from, from + 20));
      return (performance.now() - begun) / all.length;
    });
    expect(Math.min(...tries) * 2200).toBeLessThan(50);
  });

  it("counts the answers of fallback models by role and place", () => {
    const half = json("view-half.json");
    const replied = events("run.ndjson").find((event) => event.type === "model_replied");
    if (replied?.type !== "model_replied") throw new Error("the fixture has no answer");
    const instead_of = { model: "openai/a", reason: "server" } as const;
    const answer = (offset: number, effect_id: string): EventEnvelope => ({
      ...replied,
      seq: half.as_of_seq + offset,
      effect_id,
      purpose: "critic",
      model: "anthropic/b",
      instead_of,
    });
    const after = fold(half, [
      answer(1, "m1/round-1/critic"),
      answer(2, "m2/round-1/critic"),
      answer(3, "m2/D1/round-2"),
    ]);
    expect(after.model_fallbacks).toEqual([
      { role: "critic", model: "openai/a", fallback: "anthropic/b", reason: "server", answers: { m1: 1, m2: 2 } },
    ]);
    expect(half.model_fallbacks).toBeUndefined();
  });
});
