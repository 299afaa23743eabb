//! Arguments of `facts` and `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
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
if nothing needs review, and 3 if something does: a wrong number, period, scale or sign, a number
that no source supports (unless `--lenient` is passed), a citation that does not exist, or
investment advice.

Examples:
  moothall check --sample
  moothall check memo.md --facts AAPL
  moothall check memo.md --files ./documents
  moothall check memo.md --facts AAPL --format sarif > memo.sarif
  echo 'Revenue was $1,214.9 million [F0:Revenue:FY2025].' | moothall check - --facts HLXI";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckCommandArgs {
    /// File to check, or `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "sample")]
    pub(crate) file: Option<PathBuf>,
    /// Check against the filings of this company
    #[arg(long, value_name = "TICKER", required_unless_present_any = ["files", "sample"])]
    pub(crate) facts: Option<Ticker>,
    /// Check against your own documents, cited as [U0:document:passage]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Check a built-in sample text against the filings of the fictional company HLXI
    #[arg(long, conflicts_with_all = ["file", "facts", "files"])]
    pub(crate) sample: bool,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Accept numbers that no source supports; they are still reported
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Select the output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) format: CheckFormatArg,
    /// Print JSON: every claim with its result; the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

impl CheckCommandArgs {
    pub(crate) fn format(&self) -> CheckFormatArg {
        if self.json { CheckFormatArg::Json } else { self.format }
    }
}

/// The output format of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CheckFormatArg {
    /// Code frames for people
    #[default]
    Text,
    /// Every claim with its result
    Json,
    /// SARIF 2.1.0, for code scanning and editors
    Sarif,
    /// Annotations of a GitHub workflow
    Github,
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
