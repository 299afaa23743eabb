//! What several processes share that ask the same providers.

use std::fmt::Debug;
use std::pin::Pin;

/// Lets so many calls of a lane be under way at once, in all processes together.
///
/// A lane of [`crate::Gateway`] holds for the process that made it; where a provider counts the calls
/// of many machines, whoever knows them all stands behind this.
pub trait Turnstile: Debug + Send + Sync {
    /// Waits until one more call of this lane may be under way, of at most so many.
    fn enter<'a>(&'a self, lane: &'a str, width: u32) -> EnterFuture<'a>;
}

/// The future of [`Turnstile::enter`].
pub type EnterFuture<'a> = Pin<Box<dyn Future<Output = Pass> + Send + 'a>>;

/// The right to one call. Dropping it gives it up.
pub type Pass = Box<dyn Debug + Send + Sync>;
