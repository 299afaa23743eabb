//! Runs programs that nobody trusts, each in a sandbox that nobody used before.
//!
//! Two kinds of engines stand behind one trait: `microvm` (QEMU, on KVM or emulated) and `oci`
//! (runsc, runc or crun). An [`Engine`] starts a [`Vessel`]: a byte channel to the agent inside and
//! the means to end it. Everything that is said over the channel is one implementation,
//! [`Session`], and everything that a caller sees is a [`Lease`], used for one execution.
//!
//! Both need Linux. On other systems there is no engine, and who asks for one is told so.

#[cfg(target_os = "linux")]
pub mod confine;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod engine;
mod error;
mod executor;
#[cfg(test)]
mod fake;
mod host;
pub mod image;
#[cfg(target_os = "linux")]
pub mod jail;
mod lease;
#[cfg(target_os = "linux")]
pub mod microvm;
mod named;
#[cfg(target_os = "linux")]
pub mod oci;
mod pool;
mod probe;
#[cfg(target_os = "linux")]
mod raw;
mod registry;
mod runtime_version;
mod sandboxes;
mod session;
#[cfg(target_os = "linux")]
mod spawner;

#[cfg(not(target_os = "linux"))]
use crate::elsewhere::oci;
#[cfg(not(target_os = "linux"))]
pub use crate::elsewhere::{confine, jail};
pub use crate::engine::{Engine, EngineFuture, EngineName, GuestBinary, Spec, Vessel, VesselEnd};
pub use crate::error::SandboxError;
pub use crate::executor::{ExecuteFuture, Executor, Job, Ran};
pub use crate::host::{Host, HostOptions};
pub use crate::lease::{Executed, Lease};
pub use crate::named::{NamedSandboxes, Visit};
pub use crate::pool::PoolOptions;
pub use crate::probe::{ProbeReport, probe};
pub use crate::registry::{Container, Leaves, ProcessId, Record, RecordGuard, Registry};
pub use crate::runtime_version::version_warning;
pub use crate::sandboxes::{Policy, ProbedEngine, Sandboxes, SharedKernel, choose};
pub use crate::session::{Listener, Session};
