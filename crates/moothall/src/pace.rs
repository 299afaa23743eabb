//! The pace of the demonstration: its answers are there at once, and then there is nothing to watch.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::money::Spent;
use moothall_core::{Effect, EffectId};
use moothall_engine::{PerformFuture, Performer};

/// How long an answer of the demonstration takes. Models are asked as fast as they answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace(Duration);

impl Pace {
    /// As fast as it goes.
    pub(crate) const NONE: Self = Self(Duration::ZERO);

    /// About so long.
    pub(crate) fn of(answer: Duration) -> Self {
        Self(answer)
    }

    /// How long an answer takes, on average.
    pub(crate) fn answer(self) -> Duration {
        self.0
    }

    /// A performer at this pace.
    pub(crate) fn slow(self, performer: Arc<dyn Performer>) -> Arc<dyn Performer> {
        match self.0.is_zero() {
            true => performer,
            false => Arc::new(Paced { performer, pace: self }),
        }
    }

    /// How long this answer takes: from half as long to half as long again, always the same for the
    /// same question.
    fn wait(self, id: &EffectId) -> Duration {
        let mix = id
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_u32, |mix, byte| (mix ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        self.0.mul_f64(0.5 + f64::from(mix % 1000) / 1000.0)
    }
}

#[derive(Debug)]
struct Paced {
    performer: Arc<dyn Performer>,
    pace: Pace,
}

impl Performer for Paced {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            if let Effect::CallModel(request) = effect
                && request.model.is_demo()
            {
                tokio::time::sleep(self.pace.wait(id)).await;
            }
            self.performer.perform(id, effect).await
        })
    }

    fn spent(&self) -> Option<Spent> {
        self.performer.spent()
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
