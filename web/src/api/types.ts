// Answers of the server that are not generated yet.
import type { Stance } from "../gen/run";

export interface RunSummary {
  run_id: string;
  workflow: string;
  title: string;
  model: string;
  state: string;
  driven: boolean;
  created_at: string;
  updated_at: string;
  events: number;
  verdict: string | null;
  cost_micro_usd: number | null;
  tokens: number | null;
}

export interface RunList {
  runs: RunSummary[];
}

export interface ThreadTurn {
  turn_id: string;
  round: number;
  role: string;
  text: string;
  stance?: Stance | null;
  cites: string[];
}

export interface Thread {
  move_id: string;
  thread: string;
  turns: ThreadTurn[];
}

export interface Estimate {
  calls: number;
  cost_low_micro_usd: number | null;
  cost_high_micro_usd: number | null;
  free: boolean;
  cap_micro_usd: number | null;
}

export interface TickerList {
  tickers: { ticker: string; name: string; fictional: boolean }[];
}

export interface Settings {
  version: string;
  model: string | null;
  keys: { provider: string; present: boolean; source: string | null }[];
}

/** One value of a company, as `moothall facts --json` has it. */
export interface Fact {
  id: string;
  metric: string;
  period: string;
  value: string;
  unit: string;
  source: "filed" | "derived";
  concept: string;
  formula: string;
  inputs: string[];
  accession: string;
  form: string;
  filed: string;
  start: string;
  end: string;
  restated_from: string;
  link: string | null;
}

export interface Facts {
  company: { name: string; ticker: string; cik: string; industry?: string; fictional?: boolean };
  fictional: boolean;
  currency: string;
  as_of: string;
  newest_filing: { form: string; filed: string; period_end: string; link: string | null } | null;
  warnings: string[];
  missing: string[];
  facts: Fact[];
  passages: { accession: string; form: string; item: string; paragraph: number; text: string }[];
  events: { accession: string; form: string; filed: string; subjects: string; link: string | null }[];
}

export interface StartRun {
  workflow: "consult";
  ticker: string;
  rounds?: number;
  committee?: string;
  budget_usd?: string;
  source?: "filings" | "synthetic";
}

export interface Started {
  run_id: string;
}

export interface CommitteeList {
  committees: { name: string; title?: string }[];
}
