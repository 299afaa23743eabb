// What `moothall facts --json` prints and `GET /api/facts/{ticker}` answers, as far as pages use it.

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
