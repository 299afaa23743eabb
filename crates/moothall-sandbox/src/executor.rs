//! The port through which others run programs, whichever sandboxes there are.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use moothall_core::sandbox::{ExecuteRequest, Execution, GuestPath, Labels, SandboxFailure};

/// Runs programs, each in a sandbox that nobody used before.
///
/// What implementors promise:
/// - A program that crashes, hangs or prints too much is `Ok`; an error means that nothing ran,
///   after all retries.
/// - Dropping the future kills the program and everything that belongs to it.
///
/// Boxed futures because the sandbox is chosen at run time from configuration.
pub trait Executor: fmt::Debug + Send + Sync {
    /// Runs one program.
    fn execute<'a>(&'a self, job: Job<'a>) -> ExecuteFuture<'a>;
}

/// The future of one execution.
pub type ExecuteFuture<'a> = Pin<Box<dyn Future<Output = Result<Ran, SandboxFailure>> + Send + 'a>>;

/// One execution to be done.
pub struct Job<'a> {
    /// Whose it is.
    pub labels: &'a Labels,
    /// What is run.
    pub request: &'a ExecuteRequest,
    /// The bytes of `request.inputs`.
    pub inputs: BTreeMap<GuestPath, Vec<u8>>,
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// What an execution left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What is known about it.
    pub execution: Execution,
    /// The bytes of the files that were brought back.
    pub files: BTreeMap<GuestPath, Vec<u8>>,
}
