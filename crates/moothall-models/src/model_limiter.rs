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
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::catalog::Limits;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// The longest pause to wait for here. For a longer one the call fails, so the run can be
/// suspended; waiting would block all other calls without any report.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Longer pauses are treated as an error or an attack.
const LONGEST_BELIEVED_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// State shared by all calls to one model.
#[derive(Debug)]
pub(crate) struct ModelLimiter {
    slots: Semaphore,
    pace: Mutex<LimiterState>,
    requests: Option<DefaultDirectRateLimiter>,
    tokens: Option<TokenQuota>,
    clock: DefaultClock,
    /// Held while waiting for a quota, which makes waiting first come, first served.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct TokenQuota {
    limiter: DefaultDirectRateLimiter,
    /// The maximum that can be taken in one step.
    burst: NonZeroU32,
    limit: NonZeroU32,
}

#[derive(Debug)]
struct LimiterState {
    /// Current concurrency limit.
    width: u32,
    /// Configured concurrency limit.
    full: u32,
    /// Slots to remove that were in use when the limit was lowered.
    owed: u32,
    /// Successes since the limit last changed.
    successes: u32,
    /// Number of slow-downs. Calls that were in progress together cause only one.
    generation: u64,
    stopped_until: Option<Instant>,
}

impl ModelLimiter {
    pub(crate) fn new(limits: Limits) -> Self {
        let full = limits.concurrent.get();
        Self {
            slots: Semaphore::new(full as usize),
            pace: Mutex::new(LimiterState {
                width: full,
                full,
                owed: 0,
                successes: 0,
                generation: 0,
                stopped_until: None,
            }),
            requests: limits
                .requests_per_minute
                .map(|limit| RateLimiter::direct(quota(limit, 10).0)),
            tokens: limits.tokens_per_minute.map(|limit| {
                let (quota, burst) = quota(limit, 2);
                TokenQuota { limiter: RateLimiter::direct(quota), burst, limit }
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
        tokens: impl FnOnce() -> u64,
    ) -> Result<ModelPermit<'_>, Duration> {
        let slot = self.slots.acquire().await.ok();
        // Create the permit now, so a caller that is cancelled while waiting returns an owed
        // slot.
        let mut permit = ModelPermit { lane: self, slot, generation: 0 };
        self.sit_out_pause().await?;
        if self.requests.is_some() || self.tokens.is_some() {
            self.wait_for_quotas(tokens).await;
            // A pause may have started in the meantime.
            self.sit_out_pause().await?;
        }
        permit.generation = self.pace().generation;
        Ok(permit)
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
        if let Some(TokenQuota { limiter, burst, limit }) = &self.tokens {
            // A call larger than the bucket waits for several bucketfuls. One larger than the limit
            // per minute counts as a full minute, so it is possible at all.
            let mut left = tokens().min(u64::from(limit.get()));
            while let Some(part) =
                u32::try_from(left.min(u64::from(burst.get()))).ok().and_then(NonZeroU32::new)
            {
                while let Ok(Err(not_yet)) = limiter.check_n(part) {
                    tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
                }
                left -= u64::from(part.get());
            }
        }
    }

    async fn sit_out_pause(&self) -> Result<(), Duration> {
        loop {
            let now = Instant::now();
            let stopped = self.pace().stopped_until.filter(|until| *until > now);
            match stopped {
                Some(until) if until - now > LONGEST_PAUSE => return Err(until - now),
                Some(until) => tokio::time::sleep_until(until).await,
                None => return Ok(()),
            }
        }
    }

    #[cfg(test)]
    fn width(&self) -> u32 {
        self.pace().width
    }

    fn pace(&self) -> MutexGuard<'_, LimiterState> {
        // Changes are a few assignments, so a panic elsewhere cannot leave them incomplete.
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A quota that is not exceeded in any minute. A bucket of `burst` that refills at `rate` allows
/// `burst + rate` in its first minute, so their sum must equal the limit.
fn quota(limit: NonZeroU32, burst_share: u32) -> (Quota, NonZeroU32) {
    let burst = NonZeroU32::new(limit.get() / burst_share).unwrap_or(NonZeroU32::MIN);
    let refill = (limit.get() - burst.get()).max(1);
    // Rounded up: a period one nanosecond too short would eventually allow one call too many.
    let period = Duration::from_nanos(MINUTE_NANOS.div_ceil(u64::from(refill)));
    let quota = Quota::with_period(period)
        .unwrap_or_else(|| Quota::per_minute(NonZeroU32::MIN))
        .allow_burst(burst);
    (quota, burst)
}

/// Permission for one call in progress.
#[derive(Debug)]
#[must_use = "dropping the permit frees its slot"]
pub(crate) struct ModelPermit<'a> {
    lane: &'a ModelLimiter,
    slot: Option<SemaphorePermit<'a>>,
    generation: u64,
}

impl ModelPermit<'_> {
    pub(crate) fn succeeded(self) {
        let mut pace = self.lane.pace();
        pace.successes += 1;
        if pace.width < pace.full && pace.successes >= pace.width {
            pace.successes = 0;
            pace.width += 1;
            if pace.owed > 0 {
                pace.owed -= 1;
            } else {
                self.lane.slots.add_permits(1);
            }
        }
    }

    /// The provider asked for fewer requests, and possibly for a pause.
    pub(crate) fn slow_down(self, pause: Option<Duration>) {
        let mut pace = self.lane.pace();
        if let Some(pause) = pause {
            let until = Instant::now() + pause.min(LONGEST_BELIEVED_PAUSE);
            pace.stopped_until = Some(pace.stopped_until.map_or(until, |other| other.max(until)));
        }
        if self.generation == pace.generation {
            pace.generation += 1;
            pace.successes = 0;
            let narrower = (pace.width / 2).max(1);
            let fewer = (pace.width - narrower) as usize;
            pace.width = narrower;
            let taken = self.lane.slots.forget_permits(fewer);
            pace.owed += u32::try_from(fewer - taken).unwrap_or(0);
        }
    }
}

impl Drop for ModelPermit<'_> {
    fn drop(&mut self) {
        let mut pace = self.lane.pace();
        if pace.owed > 0 {
            pace.owed -= 1;
            if let Some(slot) = self.slot.take() {
                slot.forget();
            }
        }
    }
}

#[cfg(test)]
#[path = "model_limiter_tests.rs"]
mod tests;
