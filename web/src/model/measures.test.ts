import { expect, it } from "vitest";
import { measureName } from "./measures";

it("names measures by their names", () => {
  expect(
    ["CFO", "Revenue.yoy", "FreeCashFlow", "GrossMargin", "ROE", "Revenue", "EBITDAMargin"].map(measureName),
  ).toEqual([
    "Operating cash flow",
    "Revenue growth",
    "Free cash flow",
    "Gross margin",
    "Return on equity",
    "Revenue",
    "EBITDA margin",
  ]);
});
