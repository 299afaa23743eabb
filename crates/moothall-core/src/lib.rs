//! Pure decisions: workflows, findings, verdicts, receipts.
//!
//! Nothing here reads a clock, a file, a socket or a random number, and no map has a random order.
//! A [`Workflow`] describes what it wants as [`Effect`]s and is told the answers as
//! [`EffectResult`]s; whoever drives it does the rest. The same results in give the same steps out,
//! which is what lets a run be replayed, resumed and verified.

#![warn(missing_docs)]

pub mod ask;
pub mod child;
pub mod consult;
pub mod debate;
pub mod edit;
mod effect;
mod event;
pub mod guest;
pub mod purse;
pub mod receipt;
pub mod reflexion;
pub mod replay;
pub mod report;
mod run_spec;
pub mod view;
mod workflow;

pub use crate::effect::{Effect, EffectResult};
pub use crate::event::{
    Envelope, Gathered, LayerStatus, PauseReason, RoundStatus, RunEvent, RunEventBody,
    SequencedEvent,
};
pub use crate::run_spec::{
    ConsultSpec, EditSpec, IsolationChoice, NewsChoice, ProgramSpec, RunKind, RunSettings, RunSpec,
    StoredSpec, UnreadableSpec,
};
pub use moothall_evidence::{claims, evidence};
pub use moothall_gate::{drafts, gate};
pub use moothall_types::{
    EffectId, ErrorCode, Finding, InvalidId, MicroUsd, NotCanonical, RuleId, RunId, Severity,
    Sha256Hex, Verdict, access, canonical_json, causes, fenced, model, money, sandbox, structured,
    text, tokens_at_most, tokens_expected, with_causes,
};

pub use crate::workflow::{Conclusion, Outcome, Step, UnexpectedResult, Workflow};

/// Real filings, as the tests of the evidence read them.
#[cfg(test)]
#[allow(dead_code, reason = "the tests of the evidence use all of it")]
#[path = "../../moothall-evidence/src/evidence/test_data_tests.rs"]
mod test_data;

#[cfg(test)]
#[path = "generated_tests.rs"]
mod generated_tests;
