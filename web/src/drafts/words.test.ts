import { describe, expect, it } from "vitest";
import type { DraftRow } from "../gen/api";
import { rules, submissions } from "./words";

const draft = (id: string, more: Partial<DraftRow> = {}): DraftRow => ({
  draft_id: id,
  workspace: "w",
  task_id: "t",
  owner: "worker:ada/agent",
  path: `${id}.py`,
  rename_to: null,
  change: "edited",
  state: "escalated",
  revision: 1,
  touched_at: "2026-11-15T18:00:00Z",
  submitted_at: null,
  summary: "",
  together: [id],
  seal: null,
  findings: [],
  reviewed: null,
  conflict: null,
  ...more,
});

describe("drafts in a list", () => {
  it("stand together where they were handed in together", () => {
    const together = { together: ["a", "b"], seal: "s" };
    const list = submissions([draft("a", together), draft("c"), draft("b", together)]);
    expect(list.map((one) => one.files.map((file) => file.draft_id))).toEqual([["a", "b"], ["c"]]);
  });

  it("name every rule once, what weighs most first", () => {
    const finding = (rule: string, action: "warn" | "reject") => ({ rule, action, path: "a", line: null, message: "" });
    const found = rules(draft("a", { findings: [finding("x", "warn"), finding("y", "reject"), finding("x", "warn")] }));
    expect(found.map((one) => one.rule)).toEqual(["y", "x"]);
  });
});
