//! Decides whether a sentence mentions a metric. Without this, an uncited number could match an
//! unrelated fact by coincidence: "Services revenue reached $109.2 billion" equals Apple's pre-tax
//! income of 2021.

/// Words that name a metric, keyed by the part of the metric id before the first `.`.
const METRIC_WORDS: &[(&str, &[&str])] = &[
    ("Revenue", &["revenue", "net sales", "total sales", "turnover", "top line"]),
    ("NetIncome", &["net income", "net profit", "net loss", "earned", "earnings", "profit"]),
    ("OperatingIncome", &["operating income", "operating profit", "operating loss", "ebit"]),
    ("PretaxIncome", &["pre-tax", "pretax", "before tax"]),
    ("GrossProfit", &["gross"]),
    ("GrossMargin", &["gross"]),
    ("OperatingMargin", &["operating margin"]),
    ("NetMargin", &["net margin", "profit margin"]),
    ("EBITDA", &["ebitda"]),
    ("EBITDAMargin", &["ebitda"]),
    ("FreeCashFlow", &["free cash flow", "fcf"]),
    ("FCFMargin", &["free cash flow", "fcf"]),
    ("CFO", &["operating cash flow", "cash from operations", "cash flow"]),
    ("Capex", &["capex", "capital expenditure", "capital spending"]),
    ("CapexIntensity", &["capex", "capital expenditure", "capital spending"]),
    ("ResearchDevelopment", &["r&d", "research"]),
    ("RDIntensity", &["r&d", "research"]),
    ("SellingGeneralAdmin", &["sg&a", "selling"]),
    ("SGAIntensity", &["sg&a", "selling"]),
    ("SellingMarketing", &["marketing"]),
    ("StockComp", &["stock-based", "share-based", "stock comp", "sbc"]),
    ("SBCIntensity", &["stock-based", "share-based", "stock comp", "sbc"]),
    ("EPSDiluted", &["eps", "per share"]),
    ("EPSBasic", &["eps", "per share"]),
    ("SharesDiluted", &["share"]),
    ("SharesOutstanding", &["share"]),
    ("Buybacks", &["buyback", "repurchase"]),
    ("Dividends", &["dividend"]),
    ("ShareholderReturns", &["returned", "shareholder returns", "capital return"]),
    ("Cash", &["cash"]),
    ("NetCash", &["net cash", "net debt"]),
    ("TotalDebt", &["debt"]),
    ("LongTermDebtNoncurrent", &["debt"]),
    ("InterestExpense", &["interest"]),
    ("Inventory", &["inventor"]),
    ("Receivables", &["receivable"]),
    ("Goodwill", &["goodwill"]),
    ("Equity", &["equity"]),
    ("Assets", &["total assets"]),
    ("Liabilities", &["liabilities"]),
    ("DeferredRevenue", &["deferred revenue"]),
    ("RPO", &["performance obligation", "rpo", "backlog"]),
    ("WorkingCapital", &["working capital"]),
    ("CurrentRatio", &["current ratio"]),
    ("DSO", &["dso", "days sales"]),
    ("DIO", &["dio", "inventory days", "days of inventory"]),
    ("DPO", &["dpo", "days payable", "payable days"]),
    ("ROE", &["return on equity", "roe"]),
    ("ROA", &["return on assets", "roa"]),
    ("ROIC", &["return on invested", "roic"]),
    ("EffectiveTaxRate", &["tax"]),
    ("IncomeTax", &["tax"]),
    ("NetInterestIncome", &["net interest income"]),
    ("NoninterestIncome", &["noninterest income", "non-interest income"]),
    ("NoninterestExpense", &["noninterest expense", "non-interest expense"]),
    ("CreditProvision", &["provision", "credit cost"]),
    ("Deposits", &["deposit"]),
];

/// Qualifiers that reduce a metric to a part of it: "services revenue", "China sales".
const PART_QUALIFIERS: &[&str] = &[
    "services",
    "service",
    "iphone",
    "china",
    "europe",
    "americas",
    "cloud",
    "segment",
    "product",
    "products",
    "advertising",
    "subscription",
    "hardware",
    "software",
    "deferred",
    "center",
    "gaming",
    "automotive",
    "azure",
    "rental",
];

/// Whether the sentence, in lower case, mentions the metric.
pub(crate) fn mentions_metric(metric: &str, lower_sentence: &str) -> bool {
    let base = metric.split('.').next().unwrap_or(metric);
    let words =
        METRIC_WORDS.iter().find(|(name, _)| *name == base).map_or(&[][..], |(_, words)| words);
    words.iter().any(|word| {
        lower_sentence.match_indices(word).any(|(at, _)| {
            let before = lower_sentence[..at].trim_end();
            let qualifier = before.rsplit(' ').next().unwrap_or_default();
            !PART_QUALIFIERS.contains(&qualifier) || word.starts_with("deferred")
        })
    })
}

#[cfg(test)]
#[path = "metric_terms_tests.rs"]
mod tests;
