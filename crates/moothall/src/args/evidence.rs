//! Arguments of `facts` and `check`.

use std::path::PathBuf;

use clap::Args;
use moothall_core::evidence::{CalendarDay, Ticker};

const FACTS_EXAMPLES: &str = "\
All numbers come from the company's SEC filings, never from a model. Cite a cell by its row and
column, such as [F0:Revenue:FY2025]. HLXI is a fictional company; its sample filings are built in.
For all other companies the SEC requires a contact: set `evidence.contact`.

Examples:
  moothall facts HLXI
  moothall facts AAPL --csv > aapl.csv
  moothall facts MSFT --as-of 2025-12-31";

#[derive(Debug, Args)]
#[command(after_help = FACTS_EXAMPLES)]
pub(crate) struct FactsCommandArgs {
    /// Ticker of the company, as listed in the United States
    #[arg(value_name = "TICKER")]
    pub(crate) ticker: Ticker,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Print JSON: every fact with its filing, events, passages, sources
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print one line per fact, as comma-separated values
    #[arg(long)]
    pub(crate) csv: bool,
}

const CHECK_EXAMPLES: &str = "\
Every number in the text is compared with the facts cited in the same sentence. The exit code is 0
if nothing contradicts a source, and 3 if a person must look: a wrong number, period, scale or sign,
a citation that does not exist, or investment advice.

Examples:
  moothall check memo.md --facts AAPL
  moothall check memo.md --files ./documents
  echo 'Revenue was $1,214.9 million [F0:Revenue:FY2025].' | moothall check - --facts HLXI";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckCommandArgs {
    /// File to check, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Check against the filings of this company
    #[arg(long, value_name = "TICKER", required_unless_present = "files")]
    pub(crate) facts: Option<Ticker>,
    /// Check against your own documents, cited as [U0:document:passage]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Print JSON: every claim with its result
    #[arg(long)]
    pub(crate) json: bool,
}

/// Selection of filings.
#[derive(Debug, Args)]
pub(crate) struct EvidenceFlags {
    /// Use only filings up to this date, such as 2025-12-31
    #[arg(long, value_name = "DATE", value_parser = super::consult::parse_day)]
    pub(crate) as_of: Option<CalendarDay>,
    /// Accept a company without an annual report in the last 18 months
    #[arg(long)]
    pub(crate) allow_stale: bool,
    /// Use the recorded filings in this directory instead of the network
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
}
