//! The interface that other crates use to run programs, independent of the sandbox engine.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use moothall_core::sandbox::{
    ExecuteRequest, GuestPath, SandboxExecution, SandboxFailure, SandboxLabels,
};

/// Runs programs, each in a fresh sandbox.
///
/// Implementations guarantee:
/// - A program that crashes, hangs or prints too much is `Ok`; an error means that nothing ran,
///   after all retries.
/// - Dropping the future kills the program and all of its processes.
///
/// Futures are boxed because the sandbox is chosen at run time from the configuration.
pub trait ProgramExecutor: fmt::Debug + Send + Sync {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a>;
}

pub type ExecuteFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ExecutionOutput, SandboxFailure>> + Send + 'a>>;

/// One program to run.
pub struct ExecutionJob<'a> {
    /// Owner of the sandbox.
    pub labels: &'a SandboxLabels,
    pub request: &'a ExecuteRequest,
    /// Contents of the files in `request.inputs`.
    pub inputs: BTreeMap<GuestPath, Vec<u8>>,
}

impl fmt::Debug for ExecutionJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionJob").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// Result of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOutput {
    pub execution: SandboxExecution,
    /// Contents of the output files.
    pub files: BTreeMap<GuestPath, Vec<u8>>,
}
