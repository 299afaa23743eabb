//! Reports of a consultation: a view, an export, a memo, and the proof that they follow from the
//! recorded results.
//!
//! Nothing here is stored. Everything is derived by replaying the workflows with the results of a
//! run, so it works for running, paused and failed runs as well as for finished ones.
//!
//! A memo is built once, as a [`document::ReportDocument`]; Markdown, HTML and PDF are renderings of it.

mod artifacts;
mod consult_report;
mod csv;
mod derive;
mod diff;
pub mod document;
mod export;
mod html;
mod markdown;
mod memo;
mod own_sections;
mod scores;
mod sections;
mod unsupported_numbers;
mod verdict_summary;
mod visible;

pub use self::artifacts::artifacts;
pub use self::consult_report::{ConsultReport, DebateReport, proposed_moves};
pub use self::csv::csv_line;
pub use self::derive::{DeriveFault, derive};
pub use self::diff::{
    ConsultDiff, DiffKind, FactDiff, MoveDiff, MoveMatch, MovePlace, ScoreDiff, ValueDiff,
    consult_diff, matched_moves,
};
pub use self::export::export;
pub use self::html::{PaperSize, html};
pub use self::markdown::markdown;
pub use self::memo::{CitedFact, RunFacts, cited, memo};
pub(crate) use self::own_sections::memo_templates;
pub use self::scores::scores_csv;
pub use self::sections::{MemoSection, sections};
pub use self::unsupported_numbers::{UnsupportedNumber, unsupported_numbers};
pub use self::verdict_summary::{VerdictRow, VerdictSummary};
