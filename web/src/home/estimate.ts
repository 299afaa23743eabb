import { count } from "../model/format";

/** What `POST /api/estimate` answers, as far as the page uses it: what `moothall consult --estimate --json` prints. */
export interface Estimate {
  all_calls: number;
  /** In dollars; absent where a price is unknown. */
  low_usd: string | null;
  high_usd: string | null;
  cap_usd: string | null;
  /** The same consultation with a verdict that costs less, by flag of the command line. */
  cheaper_verdicts: { flag: string; all_calls: number; low_usd: string | null; high_usd: string | null }[];
}

/** The flags of cheaper verdicts as the form names them. */
const CHEAPER: Record<string, string> = {
  "--rounds 4": "4 rounds",
  "--verdict panel": "each move debated once",
};

/** Cheaper verdicts, each in a few words. */
export function cheaperVerdicts({ cheaper_verdicts }: Estimate): string[] {
  return cheaper_verdicts.map(({ flag, all_calls, low_usd, high_usd }) => {
    const cost = high_usd !== null && Number(high_usd) > 0 ? `, $${low_usd}–${high_usd}` : "";
    return `${CHEAPER[flag] ?? flag}: ${count(all_calls)} calls${cost}`;
  });
}
