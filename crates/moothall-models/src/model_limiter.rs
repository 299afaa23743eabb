//! Limits concurrent calls, requests per minute and tokens per minute of one model, and slows down
//! when the provider asks for it.
//!
//! The quotas use `governor`. The concurrency limit is adaptive: a 429 or 529 halves it, once for
//! all calls that were in progress together, and every round of successes adds one back. A
//! `Retry-After` pauses the whole limiter, not only the call that received it.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::time::Instant;

use crate::catalog::ProviderLimits;
use crate::fair_slots::{FairSlot, FairSlots};
use crate::ledger::RunKey;
use crate::shared_limiter::MinuteQuota;

/// The longest pause to wait for here. For a longer one the call fails, so the run can be
/// suspended; waiting would block all other calls without any report.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(300);

/// Longer pauses are treated as an error or an attack.
const MAX_PLAUSIBLE_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// State shared by all calls to one model.
#[derive(Debug)]
pub(crate) struct ModelLimiter {
    slots: FairSlots,
    state: Mutex<LimiterState>,
    requests: Option<DefaultDirectRateLimiter>,
    tokens: Option<TokenQuota>,
    clock: DefaultClock,
    /// Held while waiting for a quota, which makes waiting first come, first served.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct TokenQuota {
    limiter: DefaultDirectRateLimiter,
    quota: MinuteQuota,
}

#[derive(Debug)]
struct LimiterState {
    /// Current concurrency limit.
    width: u32,
    /// Configured concurrency limit.
    full: u32,
    /// Successes since the limit last changed.
    successes: u32,
    /// Number of slow-downs. Calls that were in progress together cause only one.
    generation: u64,
    stopped_until: Option<Instant>,
}

impl ModelLimiter {
    pub(crate) fn new(limits: ProviderLimits) -> Self {
        let full = limits.concurrent.get();
        Self {
            slots: FairSlots::new(full),
            state: Mutex::new(LimiterState {
                width: full,
                full,
                successes: 0,
                generation: 0,
                stopped_until: None,
            }),
            requests: limits
                .requests_per_minute
                .map(|limit| RateLimiter::direct(governor_quota(MinuteQuota::requests(limit)))),
            tokens: limits.tokens_per_minute.map(|limit| {
                let quota = MinuteQuota::tokens(limit);
                TokenQuota { limiter: RateLimiter::direct(governor_quota(quota)), quota }
            }),
            clock: DefaultClock::default(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Waits until another call may start. `tokens` estimates the tokens of the call; it is slow
    /// and only called if tokens are limited.
    ///
    /// Returns the remaining pause as an error if it is too long to wait for.
    pub(crate) async fn enter(
        &self,
        run: RunKey,
        tokens: impl FnOnce() -> u64,
    ) -> Result<ModelPermit<'_>, Duration> {
        let slot = self.slots.acquire(run).await;
        self.wait_for_pause().await?;
        if self.requests.is_some() || self.tokens.is_some() {
            self.wait_for_quotas(tokens).await;
            // A pause may have started in the meantime.
            self.wait_for_pause().await?;
        }
        Ok(ModelPermit { limiter: self, _slot: slot, generation: self.state().generation })
    }

    /// Calls that wait for a slot.
    pub(crate) fn queued(&self) -> usize {
        self.slots.queued()
    }

    /// First come, first served. Otherwise small calls would drain the bucket and a large call
    /// would never find it full.
    async fn wait_for_quotas(&self, tokens: impl FnOnce() -> u64) {
        let _turn = self.turn.lock().await;
        if let Some(requests) = &self.requests {
            while let Err(not_yet) = requests.check() {
                tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
            }
        }
        if let Some(TokenQuota { limiter, quota }) = &self.tokens {
            for part in quota.steps(tokens()) {
                while let Ok(Err(not_yet)) = limiter.check_n(part) {
                    tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
                }
            }
        }
    }

    async fn wait_for_pause(&self) -> Result<(), Duration> {
        loop {
            let now = Instant::now();
            let stopped = self.state().stopped_until.filter(|until| *until > now);
            match stopped {
                Some(until) if until - now > MAX_PAUSE => return Err(until - now),
                Some(until) => tokio::time::sleep_until(until).await,
                None => return Ok(()),
            }
        }
    }

    #[cfg(test)]
    fn width(&self) -> u32 {
        self.state().width
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        // Changes are a few assignments, so a panic elsewhere cannot leave them incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn governor_quota(quota: MinuteQuota) -> Quota {
    Quota::with_period(quota.period)
        .unwrap_or_else(|| Quota::per_minute(NonZeroU32::MIN))
        .allow_burst(quota.burst)
}

/// Permission for one call in progress.
#[derive(Debug)]
#[must_use = "dropping the permit frees its slot"]
pub(crate) struct ModelPermit<'a> {
    limiter: &'a ModelLimiter,
    _slot: FairSlot,
    generation: u64,
}

impl ModelPermit<'_> {
    pub(crate) fn succeeded(self) {
        let mut state = self.limiter.state();
        state.successes += 1;
        if state.width < state.full && state.successes >= state.width {
            state.successes = 0;
            state.width += 1;
            self.limiter.slots.set_width(state.width);
        }
    }

    /// The provider asked for fewer requests, and possibly for a pause.
    pub(crate) fn slow_down(self, pause: Option<Duration>) {
        let mut state = self.limiter.state();
        if let Some(pause) = pause {
            let until = Instant::now() + pause.min(MAX_PLAUSIBLE_PAUSE);
            state.stopped_until = Some(state.stopped_until.map_or(until, |other| other.max(until)));
        }
        if self.generation == state.generation {
            state.generation += 1;
            state.successes = 0;
            state.width = (state.width / 2).max(1);
            self.limiter.slots.set_width(state.width);
        }
    }
}

#[cfg(test)]
#[path = "model_limiter_tests.rs"]
mod tests;
