import { expect, test } from "vitest";
import { cheaperVerdicts, type Estimate } from "./estimate";

test("cheaper verdicts are named in the words of the form, with their cost unless they are free", () => {
  const estimate = (low_usd: string | null, high_usd: string | null): Estimate => ({
    all_calls: 1548,
    low_usd,
    high_usd,
    cap_usd: null,
    cheaper_verdicts: [
      { flag: "--rounds 4", all_calls: 1008, low_usd, high_usd },
      { flag: "--verdict panel", all_calls: 1116, low_usd, high_usd },
    ],
  });
  expect(cheaperVerdicts(estimate("0.20", "0.97"))).toEqual([
    "4 rounds: 1,008 calls, $0.20–0.97",
    "each move debated once: 1,116 calls, $0.20–0.97",
  ]);
  expect(cheaperVerdicts(estimate("0.00", "0.00"))[0]).toBe("4 rounds: 1,008 calls");
  expect(cheaperVerdicts(estimate(null, null))[1]).toBe("each move debated once: 1,116 calls");
});
