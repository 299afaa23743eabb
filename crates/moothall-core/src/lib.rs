//! Pure decisions: workflows, findings, verdicts, receipts.
//!
//! Nothing here reads a clock, a file, a socket or a random number, and no map has a random order.
//! A [`Workflow`] describes what it wants as [`Effect`]s and is told the answers as
//! [`EffectResult`]s; whoever drives it does the rest. The same results in give the same steps out,
//! which is what lets a run be replayed, resumed and verified.

#![warn(missing_docs)]

pub mod access;
pub mod ask;
mod canonical;
pub mod child;
pub mod claims;
pub mod consult;
pub mod debate;
pub mod drafts;
pub mod edit;
mod effect;
mod event;
pub mod evidence;
pub mod fenced;
mod finding;
pub mod gate;
pub mod guest;
mod hash;
mod id;
pub mod model;
pub mod money;
pub mod purse;
pub mod receipt;
pub mod reflexion;
pub mod replay;
pub mod report;
mod run_spec;
pub mod sandbox;
pub mod structured;
mod tokens;
pub mod view;
mod words;
mod workflow;

pub use crate::canonical::{NotCanonical, canonical_json};
pub use crate::effect::{Effect, EffectResult};
pub use crate::event::{
    Envelope, Gathered, LayerStatus, PauseReason, RoundStatus, RunEvent, RunEventBody,
    SequencedEvent,
};
pub use crate::finding::{Finding, RuleId, Severity, Verdict};
pub use crate::hash::Sha256Hex;
pub use crate::id::{EffectId, InvalidId, RunId};
pub use crate::money::MicroUsd;
pub use crate::run_spec::{
    ConsultSpec, EditSpec, IsolationChoice, NewsChoice, ProgramSpec, RunKind, RunSettings, RunSpec,
    StoredSpec, UnreadableSpec,
};
pub use crate::tokens::{tokens_at_most, tokens_expected};
pub use crate::workflow::{Conclusion, Outcome, Step, UnexpectedResult, Workflow};

#[cfg(test)]
#[path = "generated_tests.rs"]
mod generated_tests;
