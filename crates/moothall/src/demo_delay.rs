//! Delays the instant answers of the demo model, so that runs can be watched.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::money::SpendTotals;
use moothall_core::{Effect, EffectId};
use moothall_engine::{EffectPerformer, PerformFuture};

/// The average delay of a demo answer. Real models are not delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DemoDelay(Duration);

impl DemoDelay {
    pub(crate) const NONE: Self = Self(Duration::ZERO);

    pub(crate) fn of(answer: Duration) -> Self {
        Self(answer)
    }

    pub(crate) fn answer(self) -> Duration {
        self.0
    }

    /// Adds the delay to a performer.
    pub(crate) fn wrap(self, performer: Arc<dyn EffectPerformer>) -> Arc<dyn EffectPerformer> {
        match self.0.is_zero() {
            true => performer,
            false => Arc::new(DelayedPerformer { performer, delay: self }),
        }
    }

    /// Between 50 % and 150 % of the average, deterministic for each effect.
    fn wait(self, id: &EffectId) -> Duration {
        let mix = id
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_u32, |mix, byte| (mix ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        self.0.mul_f64(0.5 + f64::from(mix % 1000) / 1000.0)
    }
}

#[derive(Debug)]
struct DelayedPerformer {
    performer: Arc<dyn EffectPerformer>,
    delay: DemoDelay,
}

impl EffectPerformer for DelayedPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            if let Effect::CallModel(request) = effect
                && request.model.is_demo()
            {
                let delay = self.delay.wait(id);
                tokio::time::sleep(delay).await;
                let mut performed = self.performer.perform(id, effect).await;
                // The delay represents the time of a model, so it is part of the latency.
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                let timing = &mut performed.timing;
                timing.latency_ms = timing.latency_ms.saturating_add(delay_ms);
                return performed;
            }
            self.performer.perform(id, effect).await
        })
    }

    fn spent(&self) -> Option<SpendTotals> {
        self.performer.spent()
    }

    fn end_outage_waits(&self) {
        self.performer.end_outage_waits();
    }
}

#[cfg(test)]
#[path = "demo_delay_tests.rs"]
mod tests;
