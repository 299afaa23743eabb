//! A requested effect: what both drivers compare with the journal, perform and record.

use std::sync::Arc;

use moothall_core::consult::MoveReview;
use moothall_core::model::{FailureKind, ModelFailure, ModelName};
use moothall_core::receipt::EffectTiming;
use moothall_core::{Effect, EffectId, EffectResult, Sha256Hex};
use moothall_store::JournalEntry;
use tracing::Instrument as _;

use crate::error::EngineError;
use crate::perform::{EffectPerformer, TimedResult};
use crate::run_trace::{ParentKey, RunTrace};

/// An effect that a workflow requested, with the hash that its journal entry must have.
#[derive(Debug, Clone)]
pub(crate) struct RequestedEffect {
    pub(crate) id: EffectId,
    pub(crate) request_sha256: Sha256Hex,
    pub(crate) effect: Effect,
}

/// A performed effect.
pub(crate) enum PerformedEffect {
    /// The result, to be journaled and delivered.
    Recorded(EffectId, JournalEntry),
    /// A model call failed in a way that pauses the run. The failure is neither journaled nor
    /// delivered, so the same request is sent again when the run is resumed.
    Pauses(ModelName, ModelFailure),
}

impl RequestedEffect {
    pub(crate) fn new((id, effect): (EffectId, Effect)) -> Result<Self, EngineError> {
        Ok(Self { request_sha256: effect.request_hash()?, id, effect })
    }

    /// The result in a journal entry, if the entry belongs to this request.
    pub(crate) fn result_from(&self, entry: JournalEntry) -> Result<EffectResult, EngineError> {
        let (id, asked) = (self.id.clone(), self.request_sha256);
        if entry.request_sha256 != asked {
            return Err(EngineError::JournalMismatch { id, asked, answered: entry.request_sha256 });
        }
        match self.effect.foreign_model(&entry.result).cloned() {
            Some(model) => Err(EngineError::OtherModel { id, model }),
            None => Ok(entry.result),
        }
    }

    /// Performs the effect, in a span below `parent`.
    pub(crate) fn perform(
        self,
        performer: Arc<dyn EffectPerformer>,
        parent: &ParentKey,
    ) -> impl Future<Output = (Self, TimedResult)> + Send + use<> {
        tracing::debug!(target: "moothall::run", effect = self.id.as_str(), "effect started");
        let span = RunTrace::effect(parent, &self.id, &self.effect);
        let performing = async move {
            let performed = performer.perform(&self.id, &self.effect).await;
            (self, performed)
        };
        performing.instrument(span)
    }

    /// What to do with the result of this effect; `pauses` tells which failures pause the run.
    pub(crate) fn performed(
        self,
        TimedResult { result, timing }: TimedResult,
        pauses: impl FnOnce(FailureKind) -> bool,
    ) -> PerformedEffect {
        let Self { id, request_sha256, effect } = self;
        match (effect, result) {
            (Effect::CallModel(request), EffectResult::ModelFailed(failure))
                if pauses(failure.kind) =>
            {
                PerformedEffect::Pauses(request.model, failure)
            }
            (_, result) => {
                PerformedEffect::Recorded(id, JournalEntry { request_sha256, result, timing })
            }
        }
    }
}

/// The journal entry of a person's answer. No call waited for the person, so the latency is 0.
pub(crate) fn person_entry(request_sha256: Sha256Hex, review: MoveReview) -> JournalEntry {
    let result = EffectResult::PersonSaid(Box::new(review));
    JournalEntry { request_sha256, result, timing: EffectTiming { latency_ms: 0, tries: 1 } }
}
