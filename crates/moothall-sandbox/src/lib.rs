//! Runs untrusted programs, each in a fresh sandbox.
//!
//! Two kinds of engines implement one trait: `microvm` (QEMU, on KVM or emulated) and `oci` (runsc,
//! runc or crun). An [`SandboxEngine`] starts a [`StartedSandbox`]: a byte channel to the agent inside and a
//! handle to end it. [`AgentSession`] implements the protocol on that channel, and callers get a
//! [`SandboxLease`], which is good for one execution.
//!
//! Engines need Linux. On other systems, opening one returns [`SandboxError::NeedsLinux`].

#[cfg(target_os = "linux")]
pub mod confine;
mod engine;
mod error;
mod executor;
#[cfg(test)]
mod fake_engine;
#[cfg(target_os = "linux")]
mod ffi;
#[cfg(target_os = "linux")]
pub mod guard;
mod host;
pub mod image;
#[cfg(target_os = "linux")]
pub mod jail;
mod lease;
mod memory_budget;
#[cfg(target_os = "linux")]
pub mod microvm;
#[cfg(target_os = "linux")]
pub mod oci;
mod pool;
mod probe;
mod registry;
mod runner_cache;
mod runtime_version;
mod sandbox_runner;
mod session;
#[cfg(target_os = "linux")]
mod spawner;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use crate::engine::{
    EngineFuture, EngineName, GuestBinary, SandboxEngine, SandboxHandle, SandboxSpec,
    StartedSandbox,
};
pub use crate::error::SandboxError;
pub use crate::executor::{ExecuteFuture, ExecutionJob, ExecutionOutput, ProgramExecutor};
pub use crate::host::{HostOptions, SandboxHost};
pub use crate::lease::{LeaseOutcome, SandboxLease};
pub use crate::memory_budget::MemoryBudget;
pub use crate::pool::PoolOptions;
pub use crate::probe::{ProbeReport, ProbeSubject, probe};
pub use crate::registry::{
    CleanupList, ContainerRef, ProcessId, RecordGuard, SandboxRecord, SandboxRegistry,
};
pub use crate::runner_cache::RunnerCache;
pub use crate::runtime_version::version_warning;
pub use crate::sandbox_runner::{ProbedEngine, SandboxPolicy, SandboxRunner, SharedKernel, choose};
pub use crate::session::{AgentSession, OutputListener};
#[cfg(not(target_os = "linux"))]
use crate::unsupported::oci;
#[cfg(not(target_os = "linux"))]
pub use crate::unsupported::{confine, jail};
