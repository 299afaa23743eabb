//! Rate limits shared by several processes.

use std::fmt::Debug;
use std::pin::Pin;

/// Limits concurrent calls across all processes.
///
/// The limits of a [`crate::Gateway`] apply only to its own process. Use this if a provider counts
/// the calls of several machines.
pub trait SharedLimiter: Debug + Send + Sync {
    /// Waits until another call with this limiter name may start; at most `width` run at the same
    /// time.
    fn enter<'a>(&'a self, lane: &'a str, width: u32) -> EnterFuture<'a>;
}

pub type EnterFuture<'a> = Pin<Box<dyn Future<Output = Pass> + Send + 'a>>;

/// Permission for one call, released when dropped.
pub type Pass = Box<dyn Debug + Send + Sync>;
