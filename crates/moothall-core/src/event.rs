//! What happened in a run, as people and programs follow it.
//!
//! Events are a file format: every kind has a snapshot in `tests/it/formats.rs`.

use serde::{Deserialize, Serialize};

use crate::model::{FailureKind, ModelName, Purpose, Usage, UsageBasis};
use crate::{EffectId, MicroUsd, RunId, Verdict};

/// Something that happened. Its key is made from what happened, so a replayed run says the same
/// thing under the same key and a store can drop the repetition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenEvent")]
pub struct RunEvent {
    /// Unique within the run, and the same on every replay. A key that is not made from its event
    /// cannot be read: it could stand in another event's way.
    pub key: String,
    /// What happened.
    #[serde(flatten)]
    pub body: RunEventBody,
}

/// An event as it stands in a file or a guest's frame, before anyone looked at it.
#[derive(Deserialize)]
struct WrittenEvent {
    key: String,
    #[serde(flatten)]
    body: RunEventBody,
}

impl TryFrom<WrittenEvent> for RunEvent {
    type Error = &'static str;

    fn try_from(written: WrittenEvent) -> Result<Self, Self::Error> {
        let event = match written.body.effect_id().cloned() {
            Some(effect_id) => Self::about(&effect_id, written.body),
            None => Self::of_run(written.body),
        };
        if event.key == written.key { Ok(event) } else { Err("the key is not this event's") }
    }
}

impl RunEvent {
    /// An event about one effect.
    pub fn about(effect_id: &EffectId, body: RunEventBody) -> Self {
        Self { key: format!("{effect_id}:{}", body.name()), body }
    }

    /// An event about the run as a whole.
    pub fn of_run(body: RunEventBody) -> Self {
        let key = match &body {
            // A run may pause more than once.
            RunEventBody::RunPaused { number, .. } => format!("run:{}:{number}", body.name()),
            _ => format!("run:{}", body.name()),
        };
        Self { key, body }
    }
}

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequencedEvent {
    /// The run.
    pub run_id: RunId,
    /// From 1, without gaps.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: RunEvent,
}

/// The kinds of events. No kind carries a time or a latency: those differ between two equal runs
/// and are kept beside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEventBody {
    /// A workflow began.
    RunStarted {
        /// Which one.
        workflow: String,
    },
    /// A model answered; the usage is of this call alone.
    ModelReplied {
        /// The call.
        effect_id: EffectId,
        /// For whom it spoke.
        purpose: Purpose,
        /// Who was asked.
        model: ModelName,
        /// Tokens of this call.
        usage: Usage,
        /// Where they come from.
        usage_basis: UsageBasis,
        /// Absent where the price is unknown.
        cost_micro_usd: Option<MicroUsd>,
    },
    /// A model gave no usable answer.
    ModelFailed {
        /// The call.
        effect_id: EffectId,
        /// For whom it would have spoken.
        purpose: Purpose,
        /// Who was asked.
        model: ModelName,
        /// Why.
        kind: FailureKind,
        /// In words.
        detail: String,
    },
    /// An answer was not what was asked for; the next effect shows the model why.
    OutputRejected {
        /// The call whose answer it was.
        effect_id: EffectId,
        /// What is wrong with it.
        problems: Vec<String>,
    },
    /// The run stands still and can go on.
    RunPaused {
        /// How often it has paused, this time included.
        number: u32,
        /// What it waits for.
        reason: PauseReason,
        /// In words.
        detail: String,
    },
    /// The run came to its end. Nothing follows.
    RunFinished {
        /// What the trial came to.
        verdict: Verdict,
    },
    /// The run cannot go on. Nothing follows.
    RunFailed {
        /// Why, in words.
        detail: String,
    },
    /// Someone stopped the run. Nothing follows.
    RunCancelled,
}

impl RunEventBody {
    /// The event's name as it stands in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::ModelReplied { .. } => "model_replied",
            Self::ModelFailed { .. } => "model_failed",
            Self::OutputRejected { .. } => "output_rejected",
            Self::RunPaused { .. } => "run_paused",
            Self::RunFinished { .. } => "run_finished",
            Self::RunFailed { .. } => "run_failed",
            Self::RunCancelled => "run_cancelled",
        }
    }

    /// The effect that the event is about, where it is about one.
    pub fn effect_id(&self) -> Option<&EffectId> {
        match self {
            Self::ModelReplied { effect_id, .. }
            | Self::ModelFailed { effect_id, .. }
            | Self::OutputRejected { effect_id, .. } => Some(effect_id),
            Self::RunStarted { .. }
            | Self::RunPaused { .. }
            | Self::RunFinished { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled => None,
        }
    }

    /// Whether nothing can follow.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::RunFinished { .. } | Self::RunFailed { .. } | Self::RunCancelled => true,
            Self::RunStarted { .. }
            | Self::ModelReplied { .. }
            | Self::ModelFailed { .. }
            | Self::OutputRejected { .. }
            | Self::RunPaused { .. } => false,
        }
    }
}

/// What a paused run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseReason {
    /// More money or tokens.
    Budget,
    /// A person's decision.
    Person,
    /// A provider or another part that may come back.
    Failure,
}
