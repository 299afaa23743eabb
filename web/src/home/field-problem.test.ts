import { expect, test } from "vitest";
import { Problem } from "../api/client";
import { fieldOf, problemText } from "./field-problem";

test("a problem belongs to the field that its code or message names", () => {
  expect(fieldOf(new Problem(422, "bad-file", "missing documents"))).toBe("documents");
  expect(fieldOf(new Problem(422, "out-of-range", "`moves` must be between 1 and 40"))).toBe("moves");
  expect(fieldOf(new Problem(422, "out-of-range", "`attempts` must be between 1 and 9"))).toBeUndefined();
  expect(fieldOf(new Problem(500, "internal", "internal server error"))).toBeUndefined();
});

test("the text of a field's problem has its hint, and other problems are left out", () => {
  const refused = new Problem(422, "bad-news", "unknown source of news", "use `gdelt` or `rss:URL`");
  expect(problemText("news", undefined, refused)).toBe("unknown source of news. use `gdelt` or `rss:URL`");
  expect(problemText("documents", refused)).toBeUndefined();
});
