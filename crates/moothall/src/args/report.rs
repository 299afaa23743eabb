//! `moothall report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use moothall_core::report::Paper;

const REPORT_EXAMPLES: &str = "\
Every format but csv and json has the same words: the recommendation, the case for and against each
recommended move, scores, sources with links to the filings, gaps, and the record of the run. A run
that is not finished has a memo of what there is so far; a receipt it has only at its end.

Examples:
  moothall report 019a85c0-2f6e > memo.md
  moothall report 019a85c0-2f6e --format pdf --paper letter --out memo.pdf
  moothall report 019a85c0-2f6e --format html --out memo.html
  moothall report 019a85c0-2f6e --format csv --out scores.csv
  moothall report 019a85c0-2f6e --format json --out receipt.jsonl";

#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// What is wanted
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Md)]
    pub(crate) format: ReportFormat,
    /// Write it to this file [default: standard output; a PDF is not written to a terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The paper that html is printed on and pdf is made for
    #[arg(long, value_enum, value_name = "PAPER", default_value_t = PaperArg::A4)]
    pub(crate) paper: PaperArg,
}

/// A format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The memo as Markdown
    Md,
    /// The memo as one file for a browser, which prints well
    Html,
    /// The memo as pages
    Pdf,
    /// The scores, one row for each move, decision maker and metric
    Csv,
    /// The receipt (see: moothall verify)
    Json,
}

/// Paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperArg {
    /// 210 × 297 mm
    A4,
    /// 8.5 × 11 in
    Letter,
}

impl From<PaperArg> for Paper {
    fn from(paper: PaperArg) -> Self {
        match paper {
            PaperArg::A4 => Self::A4,
            PaperArg::Letter => Self::Letter,
        }
    }
}
