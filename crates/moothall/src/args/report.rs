//! Arguments of `report`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use moothall_core::report::PaperSize;

const REPORT_EXAMPLES: &str = "\
The memo (md, html, pdf) contains the recommendation, the case for and against each recommended
move, scores, sources with links to the filings, gaps, and the record of the run. An unfinished run
has a memo of the results so far; its receipt is available only at the end. The name of the output
file selects the format, and an existing file is replaced only with `--force`.

Examples:
  moothall report 019a85c0-2f6e > memo.md
  moothall report 019a85c0-2f6e --output memo.pdf --paper letter
  moothall report 019a85c0-2f6e --output memo.html
  moothall report 019a85c0-2f6e --output scores.csv
  moothall report 019a85c0-2f6e --output receipt.jsonl";

#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Select the format [default: from the name of the output file, or md]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ReportFormat>,
    /// Write to this file [default: standard output; a PDF is not written to a terminal]
    #[arg(short, long = "output", alias = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
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
    /// The result as one JSON document, as printed by `consult --json`
    Json,
    /// The receipt, one JSON object per line (see: moothall verify)
    Jsonl,
}

impl ReportFormat {
    /// The format that the extension of a file names.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" => Self::Md,
            "html" | "htm" => Self::Html,
            "pdf" => Self::Pdf,
            "csv" => Self::Csv,
            "json" => Self::Json,
            "jsonl" => Self::Jsonl,
            _ => return None,
        })
    }
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
