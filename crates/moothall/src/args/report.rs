//! Arguments of `report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use moothall_core::report::PaperSize;

const REPORT_EXAMPLES: &str = "\
All formats except csv and json have the same content: the recommendation, the case for and against
each recommended move, scores, sources with links to the filings, gaps, and the record of the run.
An unfinished run has a memo of the results so far; its receipt is available only at the end.

Examples:
  moothall report 019a85c0-2f6e > memo.md
  moothall report 019a85c0-2f6e --format pdf --paper letter --output memo.pdf
  moothall report 019a85c0-2f6e --format html --output memo.html
  moothall report 019a85c0-2f6e --format csv --output scores.csv
  moothall report 019a85c0-2f6e --format json --output receipt.jsonl";

#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Select the format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Md)]
    pub(crate) format: ReportFormat,
    /// Write to this file [default: standard output; a PDF is not written to a terminal]
    #[arg(short, long = "output", alias = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Set the paper size of html and pdf
    #[arg(long, value_enum, value_name = "PAPER", default_value_t = PaperArg::A4)]
    pub(crate) paper: PaperArg,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The memo as Markdown
    Md,
    /// The memo as a single HTML file, suitable for printing
    Html,
    /// The memo as PDF
    Pdf,
    /// The scores, one row per move, decision maker and metric
    Csv,
    /// The receipt (see: moothall verify)
    Json,
}

/// Paper sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperArg {
    /// 210 × 297 mm
    A4,
    /// 8.5 × 11 in
    Letter,
}

impl From<PaperArg> for PaperSize {
    fn from(paper: PaperArg) -> Self {
        match paper {
            PaperArg::A4 => Self::A4,
            PaperArg::Letter => Self::Letter,
        }
    }
}
