//! A run as people look at it: the fold of its events.
//!
//! The same fold stands in the web UI (`web/src/model/reduce.ts`): a page takes a [`RunView`] from
//! the server and goes on with the events behind it. `web/fixtures` holds runs and the views that
//! both must come to. So a rule here is simple enough to be written twice, and nothing is looked up
//! that is not in an event.

mod code;
mod consult;
mod debates;

use serde::{Deserialize, Serialize};

use crate::event::{Envelope, PauseReason, RunEventBody};
use crate::model::FailureKind;
use crate::sandbox::IsolationClass;
use crate::{EffectId, MicroUsd, RunId, Verdict};

pub use self::code::{Attempt, CodeView, Executed, Program};
pub use self::consult::{Agent, ConsultView, Layer, Progress, move_number, move_of};
pub use self::debates::{Cell, Check, MoveView, Round, Scored, Turn};

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunView {
    /// The last event that is in here; whoever follows the run asks for those after it.
    pub as_of_seq: u64,
    /// What no event says.
    pub about: About,
    /// Whether it goes on.
    pub status: Status,
    /// The time of the first event.
    pub started_at: Option<String>,
    /// The time of the last event.
    pub updated_at: Option<String>,
    /// The time of the event after which nothing follows.
    pub ended_at: Option<String>,
    /// What its model calls have used.
    pub usage: UsageTotals,
    /// The weakest walls around anything that ran in it.
    pub isolation: Option<IsolationClass>,
    /// Why walls are not what was wanted, each reason once.
    pub fallbacks: Vec<String>,
    /// A consultation.
    pub consult: Option<ConsultView>,
    /// A program.
    pub code: Option<CodeView>,
}

/// What is known of a run beside its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct About {
    /// The run.
    pub run_id: RunId,
    /// `consult`, `reflexion` or `ask`.
    pub workflow: String,
    /// What people see in a list.
    pub title: String,
    /// The model that was asked for.
    pub model: String,
    /// The build that began the run.
    pub build: String,
    /// When it was made: RFC 3339 in UTC.
    pub created_at: String,
    /// The most that it may spend.
    pub cap_micro_usd: Option<MicroUsd>,
    /// The most tokens that it may use.
    pub cap_tokens: Option<u64>,
    /// Who debates and scores, in a consultation.
    pub committee: Option<Seats>,
    /// Whether it stands still when its moves are made, for a person's review.
    pub pauses_after_moves: bool,
    /// Whether somebody drives it at the moment. A run that is neither driven nor over can go on.
    pub driven: bool,
}

/// Who sits on a committee, for the names beside what they say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Seats {
    /// What the committee is called.
    pub name: String,
    /// Who attacks.
    pub critic: Seat,
    /// Who defends and scores, in the order of their threads.
    pub decision_makers: Vec<Seat>,
    /// What is scored.
    pub metrics: Vec<Seat>,
}

/// A seat or a metric: how events name it, and what people call it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Seat {
    /// `D2`.
    pub id: String,
    /// What people call it.
    pub name: String,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Status {
    /// It goes on, or did when it was last heard of.
    Running,
    /// It stands still and can go on.
    Paused {
        /// What it waits for.
        reason: PauseReason,
        /// In words.
        detail: String,
    },
    /// It came to its end.
    Complete {
        /// What the trial came to.
        verdict: Verdict,
    },
    /// It cannot go on.
    Failed {
        /// Why, in words.
        detail: String,
        /// The kind of the model failure that ended it, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        model_failure: Option<FailureKind>,
    },
    /// Someone stopped it.
    Cancelled,
}

/// Model calls of a run, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UsageTotals {
    /// Calls that came to an end, without those that ask again.
    pub calls: u32,
    /// Calls that asked again or asked for a rewrite.
    pub extra_calls: u32,
    /// Calls without a usable answer.
    pub failed_calls: u32,
    /// Answers that were not what was asked for.
    pub rejected: u32,
    /// Prompt tokens, however they were billed.
    pub prompt_tokens: u64,
    /// Those of them that were read from a provider's cache.
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// What it cost, where prices are known.
    pub cost_micro_usd: MicroUsd,
    /// Calls whose price is unknown.
    pub unpriced_calls: u32,
}

impl RunView {
    /// A run of which nothing has been heard.
    pub fn empty(about: About) -> Self {
        Self {
            as_of_seq: 0,
            about,
            status: Status::Running,
            started_at: None,
            updated_at: None,
            ended_at: None,
            usage: UsageTotals::default(),
            isolation: None,
            fallbacks: Vec::new(),
            consult: None,
            code: None,
        }
    }

    /// Something happened. What is known already is not counted twice.
    pub fn apply(&mut self, envelope: &Envelope) {
        if envelope.seq <= self.as_of_seq {
            return;
        }
        self.as_of_seq = envelope.seq;
        self.started_at.get_or_insert_with(|| envelope.at.clone());
        self.updated_at = Some(envelope.at.clone());
        self.status = match &envelope.body {
            RunEventBody::RunPaused { reason, detail, .. } => {
                Status::Paused { reason: *reason, detail: detail.clone() }
            }
            RunEventBody::PipelineComplete { verdict, .. }
            | RunEventBody::RunFinished { verdict } => Status::Complete { verdict: *verdict },
            RunEventBody::RunFailed { detail, model_failure } => {
                Status::Failed { detail: detail.clone(), model_failure: *model_failure }
            }
            RunEventBody::RunCancelled => Status::Cancelled,
            // Nobody says that a run goes on: it does.
            _ => Status::Running,
        };
        if envelope.body.is_terminal() {
            self.ended_at = Some(envelope.at.clone());
        }
        self.count(&envelope.body);
        self.walls(&envelope.body);
        match &envelope.body {
            body @ RunEventBody::ConsultStarted { .. } => self.consult = ConsultView::new(body),
            body @ RunEventBody::AttemptStarted { .. } => {
                self.code.get_or_insert_with(CodeView::default).apply(body);
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

    fn walls(&mut self, body: &RunEventBody) {
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
        if asks_again(effect_id) { &mut self.extra_calls } else { &mut self.calls }
    }
}

/// Whether a call shows a model what was wrong with its answer.
pub fn asks_again(effect_id: &EffectId) -> bool {
    let last = effect_id.as_str().rsplit('/').next().unwrap_or_default();
    last == "rewrite" || last.starts_with("ask-")
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
