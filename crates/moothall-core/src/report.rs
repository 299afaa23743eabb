//! A consultation as its readers see it: a view, an export, a memo; and the proof that all of it
//! follows from the answers.
//!
//! Nothing here is stored. Everything is derived by replaying the pure machines over the answers of
//! a run, so it works for a run that goes on, stands still or failed as well as for one that ended.

mod artifacts;
mod derive;
mod diff;
mod export;
mod memo;
mod say;
mod view;

pub use self::artifacts::artifacts;
pub use self::derive::{DeriveFault, derive};
pub use self::diff::{
    Change, ConsultDiff, Difference, FactDiff, MoveDiff, MovePlace, ScoreDiff, consult_diff,
};
pub use self::export::export;
pub use self::memo::{RunFacts, memo};
pub use self::say::{Section, sections};
pub use self::view::{ConsultView, DebateView};
