import { expect, test } from "vitest";
import { plain, shortId } from "./format";

test("a run has the short id that the command line shows and accepts", () => {
  expect(shortId("019a85c0-2f6e-7000-8000-000000000000")).toBe("019a85c0-2f6e");
});

test("no character that hides, turns text around or controls a terminal is shown", () => {
  // Unicode's own properties, so that this does not repeat the table that it checks.
  const hidden = /[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;
  const kept = /\t|\n|\p{Variation_Selector}/u;
  const passed: string[] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code);
    const shown = plain(`a${character}b`);
    if (hidden.test(character) && !kept.test(character) && shown !== "ab" && shown !== "a\ufffdb") {
      passed.push(code.toString(16));
    }
  }
  expect(passed).toEqual([]);
  expect(plain("50 % of 1 €\tis \u{1F44D}\nyes")).toBe("50 % of 1 €\tis \u{1F44D}\nyes");
});
