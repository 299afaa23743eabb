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
const BURST: u32 = 2;

/// Name of the limiter shared by all processes that read filings.
const LIMITER_NAME: &str = "sec.gov";

/// Waits until this process and the shared limiter allow another request.
pub(crate) async fn wait(shared_limiter: Option<&dyn SharedLimiter>) {
    static LIMITER: LazyLock<EdgarLimiter> = LazyLock::new(EdgarLimiter::new);
    LIMITER.wait().await;
    if let Some(shared_limiter) = shared_limiter {
        // The shared limiter has one permit. Holding it for an eighth of a second limits the rate.
        let permit = shared_limiter.enter(LIMITER_NAME, 1).await;
        tokio::time::sleep(Duration::from_secs(1) / PER_SECOND).await;
        drop(permit);
    }
}

struct EdgarLimiter {
    quota: DefaultDirectRateLimiter,
    clock: DefaultClock,
}

impl EdgarLimiter {
    fn new() -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(number(PER_SECOND)).allow_burst(number(BURST));
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
