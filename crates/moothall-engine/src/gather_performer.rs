//! Performs evidence gathering.

use std::sync::Arc;
use std::time::Instant;

use moothall_core::money::SpendTotals;
use moothall_core::receipt::EffectTiming;
use moothall_core::{Effect, EffectId, EffectResult};
use moothall_sources::EvidenceGatherer;

use crate::perform::{EffectPerformer, PerformFuture, TimedResult};

/// Gathers evidence and delegates all other effects.
#[derive(Debug)]
pub struct GatherPerformer {
    inner: Arc<dyn EffectPerformer>,
    gathering: Arc<dyn EvidenceGatherer>,
}

impl GatherPerformer {
    /// Gathers evidence with `gathering`.
    pub fn new(inner: Arc<dyn EffectPerformer>, gathering: Arc<dyn EvidenceGatherer>) -> Self {
        Self { inner, gathering }
    }
}

impl EffectPerformer for GatherPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        let Effect::Gather(request) = effect else { return self.inner.perform(id, effect) };
        Box::pin(async move {
            let started = Instant::now();
            let result = match self.gathering.gather(request).await {
                Ok(evidence) => EffectResult::Gathered(Box::new(evidence)),
                Err(failure) => {
                    let kind = failure.kind;
                    tracing::warn!(target: "moothall::run", ?kind, "gathering evidence failed");
                    EffectResult::NotGathered(failure)
                }
            };
            let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            TimedResult { result, timing: EffectTiming { latency_ms, tries: 1 } }
        })
    }

    fn spent(&self) -> Option<SpendTotals> {
        self.inner.spent()
    }

    fn end_outage_waits(&self) {
        self.inner.end_outage_waits();
    }
}
