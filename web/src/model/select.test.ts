import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { RunView } from "../gen/run";
import { clock, plain, usd } from "./format";
import { layerWords, metricsOf, moveState, progressWords, ranked, seats, stripOf, sumsOf } from "./select";

const load = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, "../../fixtures", name), "utf8")) as RunView;

describe("what screens ask of a view", () => {
  const done = load("view.json");
  const half = load("view-half.json");

  it("ranks the recommended first and every scored move once", () => {
    const { consult } = done;
    if (!consult) throw new Error("the fixture is no consultation");
    const order = ranked(consult).map((one) => one.move_id);
    expect(order).toEqual([...consult.recommended, ...consult.other].filter((id) => order.includes(id)));
    expect(new Set(order).size).toBe(consult.moves.filter((one) => one.scored).length);
  });

  it("adds up what each decision maker gave to the score", () => {
    const ids = seats(done);
    for (const one of done.consult?.moves ?? [])
      if (one.scored) expect(sumsOf(one, ids).reduce((sum, part) => sum + part, 0)).toBe(one.scored.score);
  });

  it("shows as many rounds as are planned, with nothing live in a run that is over", () => {
    const { consult } = done;
    for (const one of consult?.moves ?? []) {
      const cells = stripOf(one, done, consult?.rounds ?? 0, seats(done));
      expect(cells.length).toBe(consult?.rounds);
      expect(cells.flat()).not.toContain("now");
    }
  });

  it("shows what happens now in a run that goes on", () => {
    const { consult } = half;
    const live = consult?.moves.filter((one) => moveState(one, half) === "live") ?? [];
    for (const one of live)
      expect(progressWords(one, seats(half), consult?.rounds ?? 0)).toMatch(/^(round \d+|being scored)/);
    expect(layerWords(done, done.consult ?? fail(), 3)).toMatch(/^\d+ scored/);
  });

  it("names metrics in the committee's order", () => {
    const names = metricsOf(done);
    expect(names.length).toBeGreaterThan(0);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("numbers and words", () => {
  it("are written as people read them", () => {
    expect([usd(2_130_000), usd(0), usd(900)]).toEqual(["$2.13", "$0.00", "<$0.01"]);
    expect([clock(462_000), clock(4_062_000)]).toEqual(["07:42", "1:07:42"]);
    expect(plain("a\tb\nc\u001b[31m\u202E")).toBe("a\tb\nc\uFFFD[31m\uFFFD");
  });
});

function fail(): never {
  throw new Error("the fixture is no consultation");
}
