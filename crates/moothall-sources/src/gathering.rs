//! The port through which a run gathers evidence.

use std::fmt;
use std::pin::Pin;

use moothall_core::consult::{GatherFailure, GatherRequest};
use moothall_core::evidence::Evidence;

/// Gathers evidence about a company.
///
/// What implementors promise:
/// - A company that is unknown, stale or silent is a failure with words for a person, never a panic,
///   and never evidence about another company.
/// - Every wait is bounded; dropping the future stops the work.
pub trait Gathering: fmt::Debug + Send + Sync {
    /// Gathers what is asked for.
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a>;
}

/// The future of one gathering. Boxed because the source is chosen at run time.
pub type GatherFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Evidence, GatherFailure>> + Send + 'a>>;
