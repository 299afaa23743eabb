//! Eight requests a second over the whole process, and over all workers of a cluster: the SEC counts
//! ten over all machines of a user, and whoever goes beyond is locked out until ten quiet minutes have
//! passed.

use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moothall_models::Turnstile;

const PER_SECOND: u32 = 8;
/// With what refills in the same second, at most ten go out in any second.
const AT_ONCE: u32 = 2;

/// What all processes share that read filings.
const LANE: &str = "sec.gov";

/// Waits until one more request may go out, of this process and of all behind the turnstile.
pub(super) async fn wait(turnstile: Option<&dyn Turnstile>) {
    static LIMITER: LazyLock<Limiter> = LazyLock::new(Limiter::new);
    LIMITER.wait().await;
    if let Some(turnstile) = turnstile {
        // The lane is one wide, so whoever has it keeps it for an eighth of a second.
        let pass = turnstile.enter(LANE, 1).await;
        tokio::time::sleep(Duration::from_secs(1) / PER_SECOND).await;
        drop(pass);
    }
}

struct Limiter {
    quota: DefaultDirectRateLimiter,
    clock: DefaultClock,
}

impl Limiter {
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
