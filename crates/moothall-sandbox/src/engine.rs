//! What an engine is: it starts vessels, and that is all that differs between engines.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{Attestation, IsolationClass, Labels, LimitName, Limits, SelfTest};
use serde::{Deserialize, Serialize};

use crate::{SandboxError, Session};

/// The future of one request to an engine. Boxed because the engine is chosen at run time.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SandboxError>> + Send + 'a>>;

/// Starts sandboxes of one kind.
///
/// What implementors promise:
/// - A vessel is new: nothing ran in it but the agent (and a parked interpreter that has seen no
///   program), its randomness and clock are its own, and it has no network and no file of the host
///   but the image, read-only.
/// - A vessel that is dropped or ended takes everything in it along; what the kernel does not clean
///   up is written down for the reaper before it is made.
/// - Dropping the future leaves nothing behind.
pub trait Engine: Debug + Send + Sync {
    /// Which one.
    fn name(&self) -> EngineName;

    /// The version of what runs the sandboxes, as it says itself.
    fn version(&self) -> &str;

    /// How strong the wall is, if it holds what it promises.
    fn class(&self) -> IsolationClass;

    /// Who holds each limit here; a limit that nobody holds is left out.
    fn holds(&self) -> BTreeMap<LimitName, String>;

    /// What the engine knows about its own walls, beside what a probe finds out from inside. What
    /// does not hold here keeps it from being used.
    fn self_tests(&self) -> Vec<SelfTest> {
        Vec::new()
    }

    /// The same engine with the host's user ids, for a host on which ids of their own do not work;
    /// nothing where this engine has none.
    fn without_user_namespace(&self) -> Option<Arc<dyn Engine>> {
        None
    }

    /// The memory of the host that one sandbox of this kind may take, for budgets.
    fn footprint_bytes(&self, spec: &Spec) -> u64;

    /// Whether starting one takes so long that a pool is worth its memory.
    fn is_worth_pooling(&self) -> bool;

    /// Starts a sandbox whose agent has said that it is ready and has been given its randomness.
    fn start<'a>(&'a self, spec: &'a Spec, labels: &'a Labels) -> EngineFuture<'a, Vessel>;
}

/// The engines by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// QEMU's `microvm` machine, on KVM or emulated.
    Microvm,
    /// gVisor.
    Runsc,
    /// The reference container runtime.
    Runc,
    /// The small container runtime.
    Crun,
}

impl EngineName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Microvm, Self::Runsc, Self::Runc, Self::Crun];

    /// The word as it stands on the command line.
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

/// What kind of sandbox is wanted. Two equal specs can be served from one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The image's name.
    pub image: String,
    /// What its program will be allowed.
    pub limits: Limits,
}

/// The agent's static binary: bytes for an initramfs, a file for a bind mount.
#[derive(Clone)]
pub struct GuestBinary {
    /// The file, readable by everyone.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Their hash.
    pub sha256: Sha256Hex,
}

impl Debug for GuestBinary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestBinary").field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

/// A started sandbox: the conversation with its agent, which is ready, and the means to end it.
#[derive(Debug)]
pub struct Vessel {
    /// The conversation.
    pub session: Session,
    /// The end.
    pub end: Box<dyn VesselEnd>,
    /// The hash of the image's manifest.
    pub image_sha256: Sha256Hex,
    /// The hash of the agent inside.
    pub guest_sha256: Sha256Hex,
}

/// The means to end a sandbox. Dropping it ends it too, as far as that is possible without waiting;
/// the reaper does the rest.
pub trait VesselEnd: Debug + Send {
    /// Its name among all sandboxes of this host.
    fn name(&self) -> &str;

    /// Says whose it is from now on, where that was not known at its start.
    fn assign(&mut self, labels: &Labels);

    /// Whether the host saw the program die for its memory. Asked before the end.
    fn was_out_of_memory(&mut self) -> bool;

    /// What the engine said on its standard error, for messages; at most a few lines.
    fn last_words(&mut self) -> String;

    /// Stops everything in it and cleans up. A clean-up that fails is for the reaper and is
    /// logged, not returned.
    fn finish(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// What is known about a vessel.
pub(crate) fn attestation(
    engine: &dyn Engine,
    vessel: &Vessel,
    spec: &Spec,
    self_tests: Vec<SelfTest>,
) -> Attestation {
    Attestation {
        engine: engine.name().to_string(),
        engine_version: engine.version().to_owned(),
        class: engine.class(),
        image: spec.image.clone(),
        image_sha256: vessel.image_sha256,
        guest_sha256: vessel.guest_sha256,
        limits: spec.limits,
        held_by: engine.holds(),
        self_tests,
    }
}
