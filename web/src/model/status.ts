// The one status of a run, by the same rule and with the same words on every page.
import type { RunSummary } from "../gen/api";
import type { RunVerdict, RunView } from "../gen/run";

export type RunCondition =
  | "running"
  | "paused"
  | "needs-review"
  | "interrupted"
  | "finished"
  | "not-passed"
  | "review-result"
  | "failed"
  | "stopped";

export interface ConditionLook {
  word: string;
  tone: "live" | "warn" | "bad" | "none";
  icon: "run" | "pause" | "person" | "check" | "close" | "warn" | "stop";
}

/** Labels of a status. `Needs you` becomes `Needs review` for users who may not review. */
export const CONDITION: Record<RunCondition, ConditionLook> = {
  running: { word: "Running", tone: "live", icon: "run" },
  paused: { word: "Paused", tone: "warn", icon: "pause" },
  "needs-review": { word: "Needs you", tone: "warn", icon: "person" },
  interrupted: { word: "Interrupted", tone: "warn", icon: "pause" },
  finished: { word: "Finished", tone: "none", icon: "check" },
  "not-passed": { word: "Did not pass", tone: "bad", icon: "close" },
  "review-result": { word: "Needs review", tone: "warn", icon: "person" },
  failed: { word: "Failed", tone: "bad", icon: "warn" },
  stopped: { word: "Stopped", tone: "none", icon: "stop" },
};

export function conditionOfView(view: RunView): RunCondition {
  const { status, about } = view;
  switch (status.state) {
    case "running":
      return about.driven ? "running" : "interrupted";
    case "paused":
      return status.reason === "question" ? "needs-review" : "paused";
    case "complete":
      return conditionOfVerdict(status.verdict);
    case "failed":
      return "failed";
    case "cancelled":
      return "stopped";
  }
}

export function conditionOfSummary(run: RunSummary): RunCondition {
  switch (run.state) {
    case "running":
      return run.driven ? "running" : "interrupted";
    case "paused":
      return run.needs_review ? "needs-review" : "paused";
    case "failed":
      return "failed";
    case "cancelled":
      return "stopped";
    case "finished":
      return conditionOfVerdict(run.verdict);
  }
}

function conditionOfVerdict(verdict: RunVerdict | null): RunCondition {
  switch (verdict) {
    case "fail":
      return "not-passed";
    case "needs-person":
      return "review-result";
    case "pass":
    case null:
      return "finished";
  }
}

/** Whether somebody works on the run now; only then anything on the page may move. */
export function isActive(view: RunView): boolean {
  return view.status.state === "running" && view.about.driven;
}
