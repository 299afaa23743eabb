//! A consultation as its readers see it: a view, an export, a memo; and the proof that all of it
//! follows from the answers.
//!
//! Nothing here is stored. Everything is derived by replaying the pure machines over the answers of
//! a run, so it works for a run that goes on, stands still or failed as well as for one that ended.
//!
//! A memo is made once, as a [`document::Document`]; Markdown, HTML and PDF are renderings of it.

mod artifacts;
mod csv;
mod derive;
mod diff;
pub mod document;
mod export;
mod html;
mod markdown;
mod memo;
mod say;
mod scores;
mod view;
mod visible;

pub use self::artifacts::artifacts;
pub use self::csv::csv_line;
pub use self::derive::{DeriveFault, derive};
pub use self::diff::{
    Change, ConsultDiff, Difference, FactDiff, MoveDiff, MovePlace, ScoreDiff, consult_diff,
};
pub use self::export::export;
pub use self::html::{Paper, html};
pub use self::markdown::markdown;
pub use self::memo::{CitedFact, RunFacts, cited, memo};
pub use self::say::{Section, sections};
pub use self::scores::scores_csv;
pub use self::view::{ConsultView, DebateView};
