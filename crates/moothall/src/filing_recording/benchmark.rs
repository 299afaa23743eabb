//! Filings of the companies of the benchmark, made by the program.

use std::sync::LazyLock;

use moothall_core::benchmark::{BenchmarkSet, company_facts_json, ticker_table_json};

static SET: LazyLock<BenchmarkSet> = LazyLock::new(BenchmarkSet::synthetic_1);

/// The set, made once per process.
pub(crate) fn set() -> &'static BenchmarkSet {
    &SET
}

/// A file of the recording. There is no list of filings: the companies have annual reports only.
pub(crate) fn read(file: &str) -> Option<Vec<u8>> {
    if file == "reference/company_tickers.json" {
        return Some(ticker_table_json(set()).into_bytes());
    }
    let cik = file.strip_prefix("companyfacts/CIK")?.strip_suffix(".json")?;
    let cik: u32 = cik.parse().ok()?;
    let company = set().companies.iter().find(|company| company.cik() == cik)?;
    Some(company_facts_json(company).into_bytes())
}
