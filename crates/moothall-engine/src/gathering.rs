//! Performing the gathering of evidence.

use std::sync::Arc;
use std::time::Instant;

use moothall_core::money::Spent;
use moothall_core::receipt::Timing;
use moothall_core::{Effect, EffectId, EffectResult};
use moothall_sources::Gathering;

use crate::perform::{PerformFuture, Performed, Performer};

/// Gathers evidence, and performs everything else as another performer does.
#[derive(Debug)]
pub struct GatherPerformer {
    others: Arc<dyn Performer>,
    gathering: Arc<dyn Gathering>,
}

impl GatherPerformer {
    /// Evidence is gathered there.
    pub fn new(others: Arc<dyn Performer>, gathering: Arc<dyn Gathering>) -> Self {
        Self { others, gathering }
    }
}

impl Performer for GatherPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        let Effect::Gather(request) = effect else { return self.others.perform(id, effect) };
        Box::pin(async move {
            let begun = Instant::now();
            let result = match self.gathering.gather(request).await {
                Ok(evidence) => EffectResult::Gathered(Box::new(evidence)),
                Err(failure) => {
                    let kind = failure.kind;
                    tracing::warn!(target: "moothall::run", ?kind, "no evidence was gathered");
                    EffectResult::NotGathered(failure)
                }
            };
            let latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            Performed { result, timing: Timing { latency_ms, tries: 1 } }
        })
    }

    fn spent(&self) -> Option<Spent> {
        self.others.spent()
    }
}
