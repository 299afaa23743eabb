/** What `POST /api/estimate` answers, as far as the page uses it: what `moothall consult --estimate --json` prints. */
export interface Estimate {
  all_calls: number;
  /** In dollars; absent where a price is unknown. */
  low_usd: string | null;
  high_usd: string | null;
  cap_usd: string | null;
}
