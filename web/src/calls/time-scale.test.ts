import { expect, test } from "vitest";
import { timeScale } from "./time-scale";

test("times are placed in proportion", () => {
  const scale = timeScale([
    { start: 1000, end: 2000 },
    { start: 1500, end: 5000 },
  ]);
  expect([scale.start, scale.end]).toEqual([1000, 5000]);
  expect([1000, 2000, 3000, 5000].map(scale.at)).toEqual([0, 0.25, 0.5, 1]);
  expect([0, 0.25, 0.5, 1].map(scale.time)).toEqual([1000, 2000, 3000, 5000]);
  expect(scale.gaps).toEqual([]);
});

test("a pause of hours does not squeeze the calls", () => {
  const hour = 3_600_000;
  const scale = timeScale([
    { start: 0, end: 10_000 },
    { start: 3 * hour, end: 3 * hour + 10_000 },
  ]);
  expect(scale.gaps).toHaveLength(1);
  expect(scale.gaps[0]?.ms).toBe(3 * hour - 10_000);
  expect(scale.at(10_000)).toBeGreaterThan(0.45);
  expect(scale.at(3 * hour)).toBeLessThan(0.55);
  for (const time of [0, 4000, 10_000, 2 * hour, 3 * hour + 500])
    expect(scale.time(scale.at(time))).toBeCloseTo(time, 3);
});

test("no calls and calls without length have an axis", () => {
  expect(timeScale([]).at(5)).toBe(0);
  const instant = timeScale([{ start: 7, end: 7 }]);
  expect([instant.at(7), instant.time(0.5)]).toEqual([0, 7]);
});
