//! A consultation: turns evidence into debated and ranked moves.
//!
//! ```text
//! 0 gather ─► 1 infer F1, F2 ─► 2 five analysts, three moves each ─► 3 a debate for each move ─► 4 rank
//!                                 and the user's own, which a person may review
//! ```
//!
//! Code checks every number and citation in an agent's text against the evidence. The author may
//! rewrite the text once. Findings that remain are marked and shown to the critic; if the text
//! contradicts its own sources, the move is not ranked until a person approves it. A part that
//! fails is reported as missing, and the run continues without it.

mod apply_review;
mod approval;
mod baseline;
mod board;
mod close_call;
pub mod committee;
mod control_record;
pub mod demonstration;
mod do_nothing;
mod dossier;
mod estimate;
mod forecasting;
mod fork;
mod ids;
mod input;
mod member_models;
mod move_file;
mod moves;
mod options;
mod outcome;
mod panel;
mod panel_prompt;
mod panel_record;
mod planted_controls;
mod prompt;
mod proposals;
mod rank;
mod replies;
mod result;
mod review;
mod run_outcomes;
mod similarity;
mod stages;
mod state;
#[cfg(test)]
#[path = "consult/support_tests.rs"]
mod support;
mod text_check;
mod truncate;
mod verdict_plan;
mod workflow;

use crate::prompt_revision::PromptTemplate;

pub use self::apply_review::USER_AUTHOR;
pub use self::approval::{ApprovalRefusal, MoveApproval, VerdictRefusal, settle};
pub use self::board::{board, panel};
pub use self::close_call::CloseCall;
pub use self::committee::Committee;
pub use self::control_record::{ControlRecord, control_records};
pub use self::do_nothing::DO_NOTHING_ID;
pub use self::dossier::dossier_tokens;
pub use self::estimate::{ConsultEstimate, RoleEstimate, calls, estimate, needed_window};
pub use self::forecasting::ForecastRecord;
pub use self::fork::{
    Fork, ForkChange, ForkFault, ForkParent, ForkPoint, ForkRequest, fork, fork_changes,
    inherited_sha256, other_than_parent,
};
pub use self::ids::GATHER_ID;
pub use self::input::{
    ConsultInput, EvidenceSource, GatherFailure, GatherFailureKind, GatherRequest, InvalidConsult,
    RoleModels,
};
pub use self::member_models::{MemberModelError, group_by_model};
pub use self::move_file::{InvalidMove, MoveFile};
pub use self::moves::{Move, Proposal};
pub use self::options::{ConsultOptions, InvalidConsultOptions, MAX_ADDED_MOVES, MAX_BRIEF_CHARS};
pub use self::outcome::outcome_of;
pub use self::panel::PanelState;
pub use self::panel_record::{PanelRecord, PanelVerdict, VERDICT_APPROVAL};
pub use self::rank::{FindingAcceptance, MoveRanking, approve, rank};
pub use self::result::{ConsultResult, RECOMMENDED, RankedMove, SupportCount};
pub use self::review::{
    MAX_CHANGES, MoveReview, MoveReviewDecision, ReviewAction, ReviewChange, ReviewQuestion,
};
pub use self::run_outcomes::{RunOutcomes, ScoredRun};
pub use self::similarity::{MIN_SIMILAR_PERCENT, similar, similarity_percent};
pub use self::state::{
    AgentFailure, CheckedDocument, ConsultState, DebateRecord, MoveConflict, MoveRecord,
    SYNTHETIC_MARK,
};
pub use self::text_check::TextCheck;
pub(crate) use self::text_check::UNCITED_READING;
pub use self::verdict_plan::{
    ChanceLevel, ControlPlan, MAX_REPEAT, VerdictConflict, VerdictMode, VerdictPlan, VerdictRequest,
};
pub use self::workflow::Consult;

/// The prompts of the first stages that users may replace.
pub(crate) fn prompt_templates() -> Vec<PromptTemplate> {
    dossier::TEMPLATES.into_iter().chain(prompt::TEMPLATES).collect()
}
