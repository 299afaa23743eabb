import { describe, expect, it } from "vitest";
import type { DraftDetail, DraftFile } from "../gen/api";
import { amendments, approvalWords, type Choices, counts, hasResult, NO_CHOICES } from "./choices";

const file = (id: string, hunks: string[], changes: string[] = []) =>
  ({
    draft: { draft_id: id },
    changes: changes.map((hunk_id) => ({ hunk_id, number: 1, kind: "mode" })),
    hunks: hunks.map((hunk_id) => ({ hunk_id, number: 1, lines: [] })),
  }) as unknown as DraftFile;

const detail = (...files: DraftFile[]) => ({ files }) as unknown as DraftDetail;

const reject = (...ids: string[]): Choices => ({
  hunks: Object.fromEntries(ids.map((id) => [id, "reject"] as const)),
  edits: {},
});

describe("choices of a reviewer", () => {
  it("are an ordinary approval without a choice, and with every hunk approved", () => {
    const all = detail(file("a", ["1", "2"]));
    expect(amendments(all, NO_CHOICES)).toEqual([]);
    expect(amendments(all, { hunks: { 1: "approve" }, edits: {} })).toEqual([]);
    expect(approvalWords(all, NO_CHOICES)).toBe("Approve");
  });

  it("name the approved hunks of each file that has a rejected one", () => {
    const all = detail(file("a", ["1", "2"], ["m"]), file("b", ["3"]));
    expect(amendments(all, reject("2"))).toEqual([{ draft_id: "a", hunks: ["m", "1"] }]);
    expect(amendments(all, reject("3"))).toEqual([{ draft_id: "b", hunks: [] }]);
    expect(approvalWords(all, reject("2", "3"))).toBe("Approve 2 of 4 hunks");
  });

  it("send an edited file as content, with the choice about its mode", () => {
    const all = detail(file("a", ["1"], ["m"]), file("b", ["3"]));
    const choices = { ...NO_CHOICES, edits: { a: "mine\n" } };
    expect(amendments(all, choices)).toEqual([{ draft_id: "a", content: "mine\n" }]);
    const without = { ...reject("m"), edits: { a: "mine\n" } };
    expect(amendments(all, without)).toEqual([{ draft_id: "a", content: "mine\n", hunks: ["1"] }]);
    expect(counts(all, choices)).toEqual({ approved: 1, of: 1 });
    expect(approvalWords(all, choices)).toBe("Approve your version of 1 file");
  });

  it("have no result if every hunk is rejected", () => {
    const all = detail(file("a", ["1"]));
    expect(hasResult(all, reject("1"))).toBe(false);
    expect(hasResult(all, { ...reject("1"), edits: { a: "" } })).toBe(true);
    expect(hasResult(all, NO_CHOICES)).toBe(true);
    // A file whose contents are gone has no hunks.
    expect(hasResult(detail(file("a", [])), NO_CHOICES)).toBe(true);
  });
});
