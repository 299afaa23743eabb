//! Rate limits shared by several processes.

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::time::Duration;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// Limits calls across all processes.
///
/// The limits of a [`crate::Gateway`] apply only to its own process. Use this if a provider counts
/// the calls of several machines.
pub trait SharedLimiter: Debug + Send + Sync {
    /// Waits until another call with this limiter name may start; at most `width` run at the same
    /// time.
    fn enter<'a>(&'a self, limiter: &'a str, width: u32) -> EnterFuture<'a>;

    /// Waits until all processes together may use `amount` more units of this quota.
    fn wait_for_quota<'a>(
        &'a self,
        name: &'a str,
        amount: u64,
        quota: MinuteQuota,
    ) -> QuotaFuture<'a>;
}

/// A quota that is not exceeded in any minute: one unit per `period` and up to `burst` at once. A
/// bucket of `burst` units that refills at a rate allows `burst + rate` units in its first minute,
/// so their sum equals the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinuteQuota {
    pub period: Duration,
    pub burst: NonZeroU32,
    /// Units per minute.
    pub limit: NonZeroU32,
}

impl MinuteQuota {
    /// A quota of `limit` units per minute, of which one in `burst_share` may be used at once.
    pub(crate) fn new(limit: NonZeroU32, burst_share: u32) -> Self {
        let burst = NonZeroU32::new(limit.get() / burst_share).unwrap_or(NonZeroU32::MIN);
        let refill = (limit.get() - burst.get()).max(1);
        // Rounded up: a period one nanosecond too short would eventually allow one unit too many.
        let period = Duration::from_nanos(MINUTE_NANOS.div_ceil(u64::from(refill)));
        Self { period, burst, limit }
    }

    pub(crate) fn requests(limit: NonZeroU32) -> Self {
        Self::new(limit, 10)
    }

    pub(crate) fn tokens(limit: NonZeroU32) -> Self {
        Self::new(limit, 2)
    }

    /// The steps in which `amount` units are taken. More than fit into the bucket take several, and
    /// more than the limit count as a full minute, so that they are possible at all.
    pub fn steps(self, amount: u64) -> impl Iterator<Item = NonZeroU32> {
        let mut left = amount.min(u64::from(self.limit.get()));
        std::iter::from_fn(move || {
            let part = u32::try_from(left.min(u64::from(self.burst.get()))).ok()?;
            left -= u64::from(part);
            NonZeroU32::new(part)
        })
    }
}

pub type QuotaFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

pub type EnterFuture<'a> = Pin<Box<dyn Future<Output = Pass> + Send + 'a>>;

/// Permission for one call, released when dropped.
pub type Pass = Box<dyn Debug + Send + Sync>;
