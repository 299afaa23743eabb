// What a person learns without looking at the page: the title of the tab, and a notification of the browser.
import type { RunVerdict, RunView } from "../gen/run";
import { plain } from "../model/format";
import { CONDITION, conditionOfView } from "../model/status";

/** The title of a run's tab: progress while it runs, then its status. */
export function runTitle(view: RunView): string {
  const name = plain(view.consult?.ticker || view.about.title);
  const condition = conditionOfView(view);
  if (condition === "running") return `${progressOf(view)} ${name} · Moothall`.trim();
  return `${CONDITION[condition].word}: ${name} · Moothall`;
}

/** `[47 %]` of the expected calls, or `[…]` if nobody knows how many there will be. */
function progressOf(view: RunView): string {
  const expected = view.consult?.expected_calls ?? 0;
  if (expected === 0) return "[…]";
  return `[${Math.min(99, Math.floor((view.usage.calls / expected) * 100))} %]`;
}

/** The text of a notification, once a run has ended or waits for a person. */
export function noticeOf(view: RunView): { title: string; body: string } | undefined {
  const name = plain(view.consult?.ticker || view.about.title);
  const { status, consult } = view;
  switch (status.state) {
    case "running":
      return undefined;
    case "paused":
      return status.reason === "question"
        ? { title: `${name} needs you`, body: "Review the moves before the debates start." }
        : { title: `${name} is paused`, body: plain(status.detail) };
    case "complete": {
      const best = consult?.moves.find((one) => one.move_id === consult.recommended[0]);
      return { title: `${name} ${completion(status.verdict)}`, body: plain(best?.title ?? "") };
    }
    case "failed":
      return { title: `${name} failed`, body: plain(status.detail) };
    case "cancelled":
      return { title: `${name} was stopped`, body: "" };
  }
}

function completion(verdict: RunVerdict): string {
  switch (verdict) {
    case "fail":
      return "did not pass";
    case "needs-person":
      return "needs review";
    case "pass":
      return "has finished";
  }
}
