//! Pure decision logic: workflows, findings, verdicts, receipts.
//!
//! Nothing here reads a clock, a file, a socket or a random number, and no map has a random order.
//! A [`Workflow`] requests [`Effect`]s and receives [`EffectResult`]s; the engine performs the I/O.
//! The same results always give the same steps, so a run can be replayed, resumed and verified.

#![warn(missing_docs)]

pub mod ask;
pub mod benchmark;
pub mod budget;
pub mod child;
pub mod consult;
pub mod debate;
mod echo;
pub mod edit;
mod effect;
mod event;
pub mod guest;
mod output_schema;
mod own_texts;
pub mod program;
mod prompt_revision;
pub mod receipt;
pub mod replay;
pub mod report;
mod run_spec;
pub mod verdict;
pub mod view;
mod workflow;

pub use crate::effect::{Effect, EffectResult};
pub use crate::event::{
    EventEnvelope, EvidenceSummary, PauseReason, RoundStatus, RunEvent, RunEventBody,
    SequencedEvent, StageStatus, UnavailableModel,
};
pub use crate::own_texts::{
    BuiltInText, OwnTexts, TextFault, TextKind, TextProblem, built_in_texts,
};
pub use crate::prompt_revision::{PromptRevision, UnknownRevision};
pub use crate::run_spec::{
    ConsultSpec, EditSpec, IsolationChoice, NewsChoice, ProgramSpec, RunKind, RunSettings, RunSpec,
    StoredSpec, UnreadableSpec,
};
pub use moothall_evidence::{claims, evidence};
pub use moothall_gate::{drafts, gate};
pub use moothall_types::{
    CanonicalJsonError, EffectId, ErrorCode, FindingSeverity, InvalidId, MicroUsd, RuleId,
    RunFinding, RunId, RunVerdict, Sha256Hex, access, canonical_json, causes, fenced, model, money,
    sandbox, structured, text, tokens_at_most, tokens_expected, with_causes,
};

pub use crate::workflow::{Conclusion, Outcome, Step, UnexpectedResult, Workflow};

/// Real filings, shared with the evidence tests.
#[cfg(test)]
#[allow(dead_code, reason = "only the evidence tests use all of it")]
#[path = "../../moothall-evidence/src/evidence/test_data_tests.rs"]
mod test_data;

#[cfg(test)]
#[path = "generated_tests.rs"]
mod generated_tests;
