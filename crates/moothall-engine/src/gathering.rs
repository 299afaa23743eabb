//! Performing the gathering of evidence.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use moothall_core::consult::{GatherFailure, GatherRequest};
use moothall_core::evidence::Evidence;
use moothall_core::money::Spent;
use moothall_core::receipt::Timing;
use moothall_core::{Effect, EffectId, EffectResult};

use crate::perform::{PerformFuture, Performed, Performer};

/// Gathers evidence about a company.
///
/// What implementors promise:
/// - A company that is unknown, stale or silent is a failure with words for a person, never a panic,
///   and never evidence about another company.
/// - Every wait is bounded; dropping the future stops the work.
pub trait Gathering: fmt::Debug + Send + Sync {
    /// Gathers what is asked for.
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a>;
}

/// The future of one gathering. Boxed because the source is chosen at run time.
pub type GatherFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Evidence, GatherFailure>> + Send + 'a>>;

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
