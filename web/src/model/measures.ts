// Names of measures in filings, for people.

const NAMES: Record<string, string> = {
  CFO: "Operating cash flow",
  FCFMargin: "Free cash flow margin",
  Capex: "Capital expenditure",
  CapexIntensity: "Capital expenditure share of revenue",
  RDIntensity: "R&D share of revenue",
  SGAIntensity: "SG&A share of revenue",
  SBCIntensity: "Stock compensation share of revenue",
  StockComp: "Stock compensation",
  SellingGeneralAdmin: "Selling, general and administrative",
  SellingMarketing: "Selling and marketing",
  ResearchDevelopment: "Research and development",
  EPSDiluted: "Earnings per share (diluted)",
  EPSBasic: "Earnings per share (basic)",
  PretaxIncome: "Income before tax",
  LongTermDebtNoncurrent: "Long-term debt",
  RPO: "Remaining performance obligations",
  DSO: "Days sales outstanding",
  DIO: "Days of inventory",
  DPO: "Days payable",
  ROE: "Return on equity",
  ROA: "Return on assets",
  ROIC: "Return on invested capital",
};

const CHANGES: Record<string, string> = { yoy: "growth", qoq: "growth on the quarter", cagr: "annual growth" };

/** `Revenue.yoy` as `Revenue growth`, `FreeCashFlow` as `Free cash flow`. */
export function measureName(metric: string): string {
  const [base = metric, ...changes] = metric.split(".");
  const words = NAMES[base] ?? sentence(base);
  return [words, ...changes.map((change) => CHANGES[change.toLowerCase()] ?? change)].join(" ");
}

function sentence(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return words
    .split(" ")
    .map((word, i) => (i === 0 || /^[A-Z0-9]{2,}$/.test(word) ? word : word.toLowerCase()))
    .join(" ");
}
