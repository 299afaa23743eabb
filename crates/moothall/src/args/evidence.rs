//! Commands about what is known of a company.

use std::path::PathBuf;

use clap::Args;
use moothall_core::evidence::{Day, Ticker};

const FACTS_EXAMPLES: &str = "\
Numbers come from what the company filed with the SEC, and from no model. A cell is cited by its
row and column, such as [F0:Revenue:FY2025]. HLXI is a company that does not exist; its filings
come with the program. For every other one the SEC wants to know who asks: set `evidence.contact`.

Examples:
  moothall facts HLXI
  moothall facts AAPL --csv > aapl.csv
  moothall facts MSFT --as-of 2025-12-31";

#[derive(Debug, Args)]
#[command(after_help = FACTS_EXAMPLES)]
pub(crate) struct FactsArgs {
    /// The company: its ticker, as listed in the United States
    #[arg(value_name = "TICKER")]
    pub(crate) ticker: Ticker,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Print JSON: every fact with its filing, events, passages, sources
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print one line for each fact, as comma-separated values
    #[arg(long)]
    pub(crate) csv: bool,
}

const CHECK_EXAMPLES: &str = "\
Every number of the text is compared with the facts that its own sentence cites. The command ends
with 0 if nothing contradicts a source, and with 3 if a person must look: a wrong number, period,
scale or sign, a citation that names nothing, advice about securities.

Examples:
  moothall check memo.md --facts AAPL
  moothall check memo.md --files ./documents
  echo 'Revenue was $1,214.9 million [F0:Revenue:FY2025].' | moothall check - --facts HLXI";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The text; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The company that the text is about
    #[arg(long, value_name = "TICKER", required_unless_present = "files")]
    pub(crate) facts: Option<Ticker>,
    /// Your own documents, which the text cites as [U0:document:passage]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Print JSON: every claim with its verdict
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which filings are used.
#[derive(Debug, Args)]
pub(crate) struct EvidenceFlags {
    /// Use only what was filed on or before this day, such as 2025-12-31
    #[arg(long, value_name = "DATE", value_parser = super::consult::parse_day)]
    pub(crate) as_of: Option<Day>,
    /// Take a company that has filed no annual report for 18 months
    #[arg(long)]
    pub(crate) allow_stale: bool,
    /// Use the recorded filings in this folder and no network
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
}
