//! Interface through which a run gathers evidence.

use std::fmt;
use std::pin::Pin;

use moothall_core::consult::{GatherFailure, GatherRequest};
use moothall_core::evidence::Evidence;

/// Gathers evidence about a company.
///
/// Implementations guarantee:
/// - An unknown, stale or unavailable company is an error with a readable message, never a panic,
///   and never evidence about another company.
/// - Every wait has a limit, and dropping the future stops the work.
pub trait EvidenceGatherer: fmt::Debug + Send + Sync {
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a>;
}

/// Boxed because the implementation is chosen at run time.
pub type GatherFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Evidence, GatherFailure>> + Send + 'a>>;
