import { expect, test } from "vitest";
import { duration, exactUsd, short } from "./call-format";

test("a cost is exact to the millionth of a dollar", () => {
  expect([0, 1, 1250, 120_000, 1_000_003, 12_340_000].map(exactUsd)).toEqual([
    "$0.00",
    "$0.000001",
    "$0.00125",
    "$0.12",
    "$1.000003",
    "$12.34",
  ]);
});

test("durations and tokens are short", () => {
  expect([0, 850, 12_340, 245_000].map(duration)).toEqual(["0 ms", "850 ms", "12.3 s", "04:05"]);
  expect([12, 1234, 45_678, 4_560_000].map(short)).toEqual(["12", "1.2k", "46k", "4.56M"]);
});
