import { expect, test } from "vitest";
import { shortId } from "./format";

test("a run has the short id that the command line shows and accepts", () => {
  expect(shortId("019a85c0-2f6e-7000-8000-000000000000")).toBe("019a85c0-2f6e");
});
