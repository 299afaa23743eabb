import { expect, it } from "vitest";
import type { MoveMatch } from "../gen/api";
import { changeWords, rankChange, sentence } from "./comparison";

const place = (title: string, rank: number | null) => ({ move_id: "m1", title, rank, recommended: false, total: 50 });
const match = (before: number | null | undefined, after: number | null | undefined, title = "A"): MoveMatch => ({
  before: before === undefined ? null : place(title, before),
  after: after === undefined ? null : place(title, after),
});

it("a rank change says how many places a move won or lost", () => {
  expect([match(3, 1), match(1, 4), match(2, 2), match(undefined, 1), match(1, undefined)].map(changeWords)).toEqual([
    "↑ 2",
    "↓ 3",
    "same",
    "new",
    "gone",
  ]);
  expect(rankChange(match(null, 2))).toBe(0);
});

it("one sentence says what happened to the first place", () => {
  expect(sentence({ moves: [match(1, 1, "Keep")] }, 0)).toBe("Both runs rank “Keep” first. No move changed its rank.");
  expect(sentence({ moves: [match(2, 1, "New"), match(1, 2, "Old")] }, 2)).toContain("from “Old” to “New”");
  expect(sentence({ moves: [match(null, null)] }, 0)).toContain("no ranking yet");
});
