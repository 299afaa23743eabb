// What a reviewer has chosen so far: hunks to reject, and files that they edited. Nothing is sent before the decision.
import type { DraftAmendmentRequest, DraftDetail, DraftFile } from "../gen/api";

export type Choices = {
  /** By hunk id; a hunk without an entry is approved. */
  readonly hunks: Readonly<Record<string, "approve" | "reject">>;
  /** The reviewer's own content, by draft id. */
  readonly edits: Readonly<Record<string, string>>;
};

export const NO_CHOICES: Choices = { hunks: {}, edits: {} };

/** The ids of everything in a file that can be approved alone, in order. */
export function hunkIds(file: DraftFile): string[] {
  const lines = file.hunks.flatMap((hunk) => (hunk.hunk_id === null ? [] : [hunk.hunk_id]));
  return [...file.changes.map((change) => change.hunk_id), ...lines];
}

export function isRejected(choices: Choices, hunkId: string): boolean {
  return choices.hunks[hunkId] === "reject";
}

/** What differs from an unchanged approval, for the request; empty if nothing does. */
export function amendments({ files }: DraftDetail, choices: Choices): DraftAmendmentRequest[] {
  return files.flatMap((file): DraftAmendmentRequest[] => {
    const draft_id = file.draft.draft_id;
    const content = choices.edits[draft_id];
    const ids = hunkIds(file);
    const approved = ids.filter((id) => !isRejected(choices, id));
    const isWhole = approved.length === ids.length;
    // The choices of an edited file still decide about its new path or mode.
    if (content !== undefined) return [isWhole ? { draft_id, content } : { draft_id, content, hunks: approved }];
    return isWhole ? [] : [{ draft_id, hunks: approved }];
  });
}

/** How many hunks of files without edits are approved, and of how many. */
export function counts({ files }: DraftDetail, choices: Choices): { approved: number; of: number } {
  const ids = files.filter((file) => choices.edits[file.draft.draft_id] === undefined).flatMap(hunkIds);
  return { approved: ids.filter((id) => !isRejected(choices, id)).length, of: ids.length };
}

/** Whether an approval would apply anything. */
export function hasResult(detail: DraftDetail, choices: Choices): boolean {
  const { approved, of } = counts(detail, choices);
  return Object.keys(choices.edits).length > 0 || approved > 0 || of === 0;
}

/** The label of the approval button. */
export function approvalWords(detail: DraftDetail, choices: Choices): string {
  const { approved, of } = counts(detail, choices);
  const edited = Object.keys(choices.edits).length;
  const hunks = approved === of ? "" : `${approved} of ${of} hunks`;
  const files = edited === 0 ? "" : `your version of ${edited === 1 ? "1 file" : `${edited} files`}`;
  const what = [hunks, files].filter((part) => part !== "").join(" and ");
  return what === "" ? "Approve" : `Approve ${what}`;
}
