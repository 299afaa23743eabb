//! Limits requests to eight per second for this process and all workers of a cluster.
//!
//! The SEC allows ten per second across all machines of a user. A client that exceeds it is blocked
//! until it has sent no request for ten minutes.

use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moothall_models::SharedLimiter;

const PER_SECOND: u32 = 8;
/// Burst size. Together with the refill, at most ten requests are sent in any second.
const AT_ONCE: u32 = 2;

/// Name of the limiter shared by all processes that read filings.
const LANE: &str = "sec.gov";

/// Waits until this process and the shared limiter allow another request.
pub(crate) async fn wait(turnstile: Option<&dyn SharedLimiter>) {
    static LIMITER: LazyLock<EdgarLimiter> = LazyLock::new(EdgarLimiter::new);
    LIMITER.wait().await;
    if let Some(turnstile) = turnstile {
        // The shared limiter has one permit. Holding it for an eighth of a second limits the rate.
        let pass = turnstile.enter(LANE, 1).await;
        tokio::time::sleep(Duration::from_secs(1) / PER_SECOND).await;
        drop(pass);
    }
}

struct EdgarLimiter {
    quota: DefaultDirectRateLimiter,
    clock: DefaultClock,
}

impl EdgarLimiter {
    fn new() -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(number(PER_SECOND)).allow_burst(number(AT_ONCE));
        Self { quota: RateLimiter::direct(quota), clock: DefaultClock::default() }
    }

    async fn wait(&self) {
        while let Err(not_yet) = self.quota.check() {
            tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
        }
    }
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
