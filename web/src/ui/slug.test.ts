import { expect, it } from "vitest";
import { slugs } from "./slug";

it("anchors are readable and unique", () => {
  expect(slugs(["What to do", "m7: Buy, then build!", "What to do", "…", "Ärger"])).toEqual([
    "what-to-do",
    "m7-buy-then-build",
    "what-to-do-2",
    "section",
    "ärger",
  ]);
});
