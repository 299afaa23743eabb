//! The state of a run for display, computed by folding its events.
//!
//! The web UI has the same reducer (`web/src/model/reduce.ts`): a page loads a [`RunView`] from the
//! server and applies later events. `web/fixtures` has runs with the views that both must produce.
//! Rules here must therefore be simple enough to implement twice and use nothing that is not in an
//! event.

mod call_detail;
mod call_page;
mod calls;
mod consult;
mod costs;
mod debates;
mod fallback_use;
mod program;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consult::{ForkChange, ForkPoint};
use crate::event::{EventEnvelope, PauseReason, RunEventBody};
use crate::model::FailureKind;
use crate::sandbox::IsolationClass;
use crate::{EffectId, MicroUsd, RunId, RunVerdict};

pub use self::call_detail::{CallDetail, CallMessage, CallPrompt};
pub use self::call_page::{CallFilter, CallPage, CallSum, CallSums, NO_MOVE};
pub use self::calls::{CallResult, ModelCall, RunCalls, UnknownCallResult};
pub use self::consult::{
    AgentView, ConsultView, StageProgress, StageView, VerdictView, is_move_id, move_number, move_of,
};
pub use self::costs::{CallCosts, CostBreakdown, CostPart};
pub use self::debates::{
    ClaimCheckView, MoveScores, MoveView, RoundView, ThreadRoundView, TurnView,
};
pub use self::fallback_use::FallbackUse;
pub use self::program::{AttemptView, ExecutionView, Program, ProgramView};

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunView {
    /// The sequence number of the last event included; clients request the events after it.
    pub as_of_seq: u64,
    /// Information that is not in events.
    pub about: RunInfo,
    /// The status.
    pub status: RunStatus,
    /// The time of the first event.
    pub started_at: Option<String>,
    /// The time of the last event.
    pub updated_at: Option<String>,
    /// The time of the final event.
    pub ended_at: Option<String>,
    /// The total usage of its model calls.
    pub usage: UsageTotals,
    /// The cost of its answered calls, by purpose and model.
    pub costs: Vec<CallCosts>,
    /// Answers that fallbacks gave instead of unavailable models, by role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<FallbackUse>>"))]
    pub model_fallbacks: Vec<FallbackUse>,
    /// The weakest isolation class of anything that ran in it.
    pub isolation: Option<IsolationClass>,
    /// Why isolation was weaker than requested, without duplicates.
    pub fallbacks: Vec<String>,
    /// The consultation, if it is one.
    pub consult: Option<ConsultView>,
    /// The program run, if it is one.
    pub code: Option<ProgramView>,
}

/// Information about a run besides its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunInfo {
    /// The run.
    pub run_id: RunId,
    /// The workflow's name: `consult`, `run` or `edit`.
    pub workflow: String,
    /// The title shown in lists.
    pub title: String,
    /// The requested model.
    pub model: String,
    /// The models with their members, if a consultation uses several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub models: Option<String>,
    /// The build that started the run.
    pub build: String,
    /// The creation time: RFC 3339 in UTC.
    pub created_at: String,
    /// The spend limit.
    pub cap_micro_usd: Option<MicroUsd>,
    /// The token limit.
    pub cap_tokens: Option<u64>,
    /// The committee of a consultation.
    pub committee: Option<CommitteeView>,
    /// Whether it pauses for a review of the moves before the debates.
    pub pauses_after_moves: bool,
    /// Whether a process is driving it now. A run that is neither driven nor finished can be
    /// resumed.
    pub driven: bool,
    /// The run that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub parent: Option<ForkView>,
    /// The score of doing nothing, if a finished consultation has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub do_nothing: Option<DoNothingView>,
}

/// The score of doing nothing, which is not debated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DoNothingView {
    /// The sum of all scores.
    pub score: u32,
    /// The highest possible sum.
    pub out_of: u32,
    /// The difference between the highest and the lowest sum of a decision maker.
    pub spread: u32,
    /// Scores by decision maker and metric.
    pub breakdown: BTreeMap<String, BTreeMap<String, u8>>,
}

/// The parent of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ForkView {
    /// The run that was forked.
    pub run_id: RunId,
    /// The first stage that the fork executed itself.
    pub from: ForkPoint,
    /// The settings that differ; absent if the parent was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub changes: Option<Vec<ForkChange>>,
}

/// The members and metrics of a committee, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeView {
    /// The committee's name.
    pub name: String,
    /// The critic.
    pub critic: MemberView,
    /// The decision makers, in the order of their threads.
    pub decision_makers: Vec<MemberView>,
    /// The metrics.
    pub metrics: Vec<MemberView>,
}

/// A committee member or a metric: its id in events and its display name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MemberView {
    /// `D2`.
    pub id: String,
    /// The display name.
    pub name: String,
}

/// The status of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RunStatus {
    /// Running, as of the last event.
    Running,
    /// Paused; it can be resumed.
    Paused {
        /// The reason for waiting.
        reason: PauseReason,
        /// The reason as text.
        detail: String,
    },
    /// Finished.
    Complete {
        /// The verdict.
        verdict: RunVerdict,
    },
    /// Failed.
    Failed {
        /// The error message.
        detail: String,
        /// The kind of model failure that ended it, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        model_failure: Option<FailureKind>,
    },
    /// Cancelled.
    Cancelled,
}

/// Usage of all model calls of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UsageTotals {
    /// Finished calls, without retries.
    pub calls: u32,
    /// Retries and rewrites.
    pub extra_calls: u32,
    /// Calls without a usable answer.
    pub failed_calls: u32,
    /// Answers that were rejected as invalid.
    pub rejected: u32,
    /// Prompt tokens, cached or not.
    pub prompt_tokens: u64,
    /// Prompt tokens read from a provider's cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost of calls with a known price.
    pub cost_micro_usd: MicroUsd,
    /// Calls with an unknown price.
    pub unpriced_calls: u32,
}

impl RunView {
    /// A run without events.
    pub fn empty(about: RunInfo) -> Self {
        Self {
            as_of_seq: 0,
            about,
            status: RunStatus::Running,
            started_at: None,
            updated_at: None,
            ended_at: None,
            usage: UsageTotals::default(),
            costs: Vec::new(),
            model_fallbacks: Vec::new(),
            isolation: None,
            fallbacks: Vec::new(),
            consult: None,
            code: None,
        }
    }

    /// Applies an event. Events already included are ignored.
    pub fn apply(&mut self, envelope: &EventEnvelope) {
        if envelope.seq <= self.as_of_seq {
            return;
        }
        self.as_of_seq = envelope.seq;
        self.started_at.get_or_insert_with(|| envelope.at.clone());
        self.updated_at = Some(envelope.at.clone());
        self.status = match &envelope.body {
            RunEventBody::RunPaused { reason, detail, .. } => {
                RunStatus::Paused { reason: *reason, detail: detail.clone() }
            }
            RunEventBody::PipelineComplete { verdict, .. }
            | RunEventBody::RunFinished { verdict } => RunStatus::Complete { verdict: *verdict },
            RunEventBody::RunFailed { detail, model_failure } => {
                RunStatus::Failed { detail: detail.clone(), model_failure: *model_failure }
            }
            RunEventBody::RunCancelled => RunStatus::Cancelled,
            // There is no event for resuming: any other event means that the run is running.
            _ => RunStatus::Running,
        };
        if envelope.body.is_terminal() {
            self.ended_at = Some(envelope.at.clone());
        }
        self.count(&envelope.body);
        CallCosts::count(&mut self.costs, &envelope.body);
        FallbackUse::count(&mut self.model_fallbacks, &envelope.body);
        self.update_isolation(&envelope.body);
        match &envelope.body {
            body @ RunEventBody::ConsultStarted { .. } => self.consult = ConsultView::new(body),
            body @ RunEventBody::AttemptStarted { .. } => {
                self.code.get_or_insert_with(ProgramView::default).apply(body);
            }
            body => {
                if let Some(consult) = &mut self.consult {
                    consult.apply(body, &envelope.at);
                }
                if let Some(code) = &mut self.code {
                    code.apply(body);
                }
            }
        }
    }

    fn count(&mut self, body: &RunEventBody) {
        let usage = &mut self.usage;
        let add = |count: &mut u32| *count = count.saturating_add(1);
        match body {
            RunEventBody::ModelReplied { effect_id, usage: used, cost_micro_usd, .. } => {
                add(usage.counter(effect_id));
                usage.prompt_tokens = usage.prompt_tokens.saturating_add(used.prompt());
                usage.cached_tokens = usage.cached_tokens.saturating_add(used.cache_read);
                usage.output_tokens = usage.output_tokens.saturating_add(used.output);
                match cost_micro_usd {
                    Some(cost) => usage.cost_micro_usd = usage.cost_micro_usd.saturating_add(*cost),
                    None => add(&mut usage.unpriced_calls),
                }
            }
            RunEventBody::ModelFailed { effect_id, .. } => {
                add(usage.counter(effect_id));
                add(&mut usage.failed_calls);
            }
            RunEventBody::OutputRejected { .. } => add(&mut usage.rejected),
            _ => {}
        }
    }

    fn update_isolation(&mut self, body: &RunEventBody) {
        let (class, fallback) = match body {
            RunEventBody::Isolation { class, fallback, .. } => (*class, fallback.as_ref()),
            RunEventBody::Executed { class, .. } => (*class, None),
            _ => return,
        };
        self.isolation = Some(self.isolation.map_or(class, |weakest| weakest.min(class)));
        if let Some(reason) = fallback
            && !self.fallbacks.contains(reason)
        {
            self.fallbacks.push(reason.clone());
        }
    }
}

impl UsageTotals {
    fn counter(&mut self, effect_id: &EffectId) -> &mut u32 {
        if is_extra_call(effect_id) { &mut self.extra_calls } else { &mut self.calls }
    }
}

/// Whether a call is a retry or a rewrite.
pub fn is_extra_call(effect_id: &EffectId) -> bool {
    let last = effect_id.as_str().rsplit('/').next().unwrap_or_default();
    last == "rewrite" || last.starts_with("ask-")
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
