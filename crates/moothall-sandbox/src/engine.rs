//! The [`SandboxEngine`] trait: how one kind of sandbox is started.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{
    IsolationClass, LimitName, SandboxAttestation, SandboxLabels, SandboxLimits, SelfTest,
};
use serde::{Deserialize, Serialize};

use crate::{AgentSession, SandboxError};

/// A boxed future, because the engine is chosen at run time.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SandboxError>> + Send + 'a>>;

/// Starts sandboxes of one kind.
///
/// Implementations guarantee:
/// - A sandbox is new: nothing has run in it except the agent (and a parked interpreter that has
///   seen no program), it has its own randomness and clock, and it has no network and no host files
///   except the read-only image.
/// - Dropping or ending a sandbox ends everything in it. Resources that the kernel does not clean
///   up are recorded for the reaper before they are created.
/// - Dropping the future leaves nothing behind.
pub trait SandboxEngine: Debug + Send + Sync {
    fn name(&self) -> EngineName;

    /// The version that the underlying runtime reports.
    fn version(&self) -> &str;

    /// The isolation class that this engine claims.
    fn class(&self) -> IsolationClass;

    /// What enforces each limit. Limits that are not enforced are left out.
    fn enforced_limits(&self) -> BTreeMap<LimitName, String>;

    /// Self-tests of the engine itself, in addition to what the probe tests from inside. A failed
    /// test disables the engine.
    fn self_tests(&self) -> Vec<SelfTest> {
        Vec::new()
    }

    /// The same engine with the host's user ids, for hosts where user namespaces do not work.
    /// `None` if this engine does not use a user namespace.
    fn without_user_namespace(&self) -> Option<Arc<dyn SandboxEngine>> {
        None
    }

    /// Host memory that one sandbox may use, for memory budgets.
    fn footprint_bytes(&self, spec: &SandboxSpec) -> u64;

    /// Whether starting a sandbox is slow enough to justify the memory of a pool.
    fn is_worth_pooling(&self) -> bool;

    /// Starts a sandbox. On return its agent has reported ready and has been seeded with
    /// randomness.
    fn start<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        labels: &'a SandboxLabels,
    ) -> EngineFuture<'a, StartedSandbox>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// QEMU's `microvm` machine, on KVM or emulated.
    Microvm,
    /// gVisor.
    Runsc,
    /// The reference OCI runtime.
    Runc,
    /// A lightweight OCI runtime.
    Crun,
}

impl EngineName {
    pub const ALL: [Self; 4] = [Self::Microvm, Self::Runsc, Self::Runc, Self::Crun];

    /// The name used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Microvm => "microvm",
            Self::Runsc => "runsc",
            Self::Runc => "runc",
            Self::Crun => "crun",
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kind of sandbox to start. Equal specs can share a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSpec {
    pub image: String,
    /// Limits of the program that will run in it.
    pub limits: SandboxLimits,
}

impl SandboxSpec {
    /// For an image without a root file system, in which only the agent runs. It holds a workflow,
    /// its prompts and its files, so the limits are small.
    pub fn agent_only(image: &str) -> Self {
        let limits = SandboxLimits {
            memory_bytes: 32 << 20,
            disk_bytes: 8 << 20,
            file_bytes: 8 << 20,
            ..SandboxLimits::default()
        };
        Self { image: image.to_owned(), limits }
    }
}

/// The agent's static binary: bytes for an initramfs, a file for a bind mount.
#[derive(Clone)]
pub struct GuestBinary {
    /// World-readable file.
    pub path: PathBuf,
    pub bytes: Arc<[u8]>,
    pub sha256: Sha256Hex,
}

impl Debug for GuestBinary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestBinary").field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

/// A started sandbox: a session with its agent, which is ready, and a handle to end it.
#[derive(Debug)]
pub struct StartedSandbox {
    pub session: AgentSession,
    pub end: Box<dyn SandboxHandle>,
    /// Hash of the image manifest.
    pub image_sha256: Sha256Hex,
    /// Hash of the agent binary.
    pub guest_sha256: Sha256Hex,
}

/// Ends a sandbox. Dropping it also ends the sandbox as far as possible without blocking; the
/// reaper does the rest.
pub trait SandboxHandle: Debug + Send {
    /// Name of the sandbox, unique on this host.
    fn name(&self) -> &str;

    /// Sets the owner labels if they were not known at start.
    fn assign(&mut self, labels: &SandboxLabels);

    /// Whether the host saw an out-of-memory kill. Must be called before `finish`.
    fn was_out_of_memory(&mut self) -> bool;

    /// The last few lines that the engine wrote to standard error, for error messages.
    fn stderr_tail(&mut self) -> String;

    /// Stops everything in the sandbox and cleans up. Cleanup failures are logged and left to the
    /// reaper.
    fn finish(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

pub(crate) fn attestation(
    engine: &dyn SandboxEngine,
    sandbox: &StartedSandbox,
    spec: &SandboxSpec,
    self_tests: Vec<SelfTest>,
) -> SandboxAttestation {
    SandboxAttestation {
        engine: engine.name().to_string(),
        engine_version: engine.version().to_owned(),
        class: engine.class(),
        image: spec.image.clone(),
        image_sha256: sandbox.image_sha256,
        guest_sha256: sandbox.guest_sha256,
        limits: spec.limits,
        held_by: engine.enforced_limits(),
        self_tests,
    }
}
