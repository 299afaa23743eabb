import type { CallPurpose } from "../gen/run";

// The same names as in `crates/moothall-core/src/view/costs.rs`.
export const ROLE: Partial<Record<CallPurpose, string>> = {
  "synthesize-financials": "evidence",
  "synthesize-news": "evidence",
  "infer-financial": "inference",
  "infer-trend": "inference",
  analyst: "analysts",
  critic: "critic",
  critique: "critic",
  "decision-maker": "decision makers",
  score: "decision makers",
  "score-nothing": "decision makers",
  "score-baseline": "decision makers",
  "panel-score": "panel",
  generate: "programmer",
  edit: "editor",
  review: "reviewer",
};
