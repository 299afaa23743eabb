//! OCI runtimes: where they are installed, their arguments and their overhead.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use moothall_core::sandbox::{IsolationClass, SandboxLimits};

use super::SandboxKernel;
use super::cgroup::{CgroupController, CgroupLimits, CgroupSupport};
use crate::runtime_version::{RUNSC_MINIMUM, release_date};
use crate::{EngineName, SandboxError};

/// Folders searched in addition to `PATH`, which may lack the `sbin` folders.
const EXTRA_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// gVisor's own memory, added to the program's limit. Measured: 54 MB.
const GVISOR_BYTES: u64 = 60 << 20;

/// Memory of the agent, which counts towards the program's limit.
const AGENT_BYTES: u64 = 5 << 20;

/// Minimum process limit for gVisor, whose kernel has its own threads. With fewer it crashes when a
/// program reaches its limit.
const GVISOR_THREADS: u64 = 512;

/// Minimum process limit for runtimes that need several threads inside before they exec the agent.
const START_THREADS: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OciRuntimeKind {
    Runsc,
    Runc,
    Crun,
}

impl OciRuntimeKind {
    pub(crate) fn of(name: EngineName) -> Option<Self> {
        match name {
            EngineName::Runsc => Some(Self::Runsc),
            EngineName::Runc => Some(Self::Runc),
            EngineName::Crun => Some(Self::Crun),
            EngineName::Microvm => None,
        }
    }

    pub(crate) fn name(self) -> EngineName {
        match self {
            Self::Runsc => EngineName::Runsc,
            Self::Runc => EngineName::Runc,
            Self::Crun => EngineName::Crun,
        }
    }

    pub(crate) fn class(self) -> IsolationClass {
        match self {
            Self::Runsc => IsolationClass::UserKernel,
            Self::Runc | Self::Crun => IsolationClass::SharedKernel,
        }
    }

    pub(crate) fn kernel(self) -> SandboxKernel {
        match self {
            Self::Runsc => SandboxKernel::Gvisor,
            Self::Runc | Self::Crun => SandboxKernel::Host,
        }
    }

    /// Host memory of one sandbox beyond the program's limit.
    pub(crate) fn own_bytes(self) -> u64 {
        match self {
            Self::Runsc => GVISOR_BYTES,
            Self::Runc | Self::Crun => AGENT_BYTES,
        }
    }

    /// What enforces the limit of a controller.
    pub(crate) fn enforced_by(self, controller: CgroupController) -> String {
        match (self, controller) {
            (Self::Runsc, CgroupController::Memory) => {
                format!("host cgroup, with {} MiB for gvisor", GVISOR_BYTES >> 20)
            }
            (Self::Runsc, CgroupController::Pids) => {
                format!(
                    "gvisor user limit; host cgroup, at least {GVISOR_THREADS} with its threads"
                )
            }
            _ => "host cgroup".to_owned(),
        }
    }

    /// The host's cgroup limits for a sandbox with these limits.
    pub(crate) fn resources(self, limits: &SandboxLimits) -> CgroupLimits {
        let pids = u64::from(limits.pids);
        match self {
            Self::Runsc => CgroupLimits::new(limits, GVISOR_BYTES, pids.max(GVISOR_THREADS)),
            // Plus one for the agent.
            Self::Runc | Self::Crun => CgroupLimits::new(limits, 0, (pids + 1).max(START_THREADS)),
        }
    }
}

/// An installed runtime.
#[derive(Debug)]
pub(crate) struct OciRuntime {
    pub(crate) kind: OciRuntimeKind,
    pub(crate) program: PathBuf,
    pub(crate) version: String,
}

/// Finds the path of a runtime.
pub(crate) fn program(name: EngineName) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(EXTRA_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name.as_str()))
        .find(|file| file.is_absolute() && file.is_file())
}

impl OciRuntime {
    /// Finds the runtime and reads its version.
    pub(crate) fn find(kind: OciRuntimeKind) -> Result<Self, SandboxError> {
        let name = kind.name().as_str();
        let missing = || SandboxError::Missing { program: name.to_owned() };
        let program = program(kind.name()).ok_or_else(missing)?;
        let output = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(SandboxError::host(format!("cannot run {name} to get its version")))?;
        let output = String::from_utf8_lossy(&output.stdout);
        let version = version_in(&output).ok_or_else(|| SandboxError::Start {
            engine: name.to_owned(),
            problem: "it does not report a version".to_owned(),
        })?;
        Ok(Self { kind, program, version })
    }

    /// Checks that the runtime can work on this host.
    pub(crate) fn check(&self, cgroups: &CgroupSupport) -> Result<(), SandboxError> {
        let problem = if !rustix::process::geteuid().is_root() {
            "it needs root, because limits need control groups; without root, use microvm"
        } else if self.kind == OciRuntimeKind::Crun && cgroups.is_hybrid() {
            "the host has cgroups in hybrid mode, which crun does not support; use runc instead"
        } else {
            return Ok(());
        };
        Err(SandboxError::Start {
            engine: self.kind.name().to_string(),
            problem: problem.to_owned(),
        })
    }

    /// The arguments that run a bundle in the foreground.
    pub(crate) fn run(&self, state: &Path, bundle: &Path, id: &str) -> Vec<Box<OsStr>> {
        let mut arguments: Vec<&OsStr> = vec!["--root".as_ref(), state.as_ref()];
        arguments.extend(self.flags().iter().map(OsStr::new));
        arguments.push("run".as_ref());
        if self.kind == OciRuntimeKind::Runc {
            // Keep its cgroups, because their counters show out-of-memory kills; `OciHandle` removes
            // them.
            arguments.push("--keep".as_ref());
        }
        arguments.extend::<[&OsStr; 3]>(["--bundle".as_ref(), bundle.as_ref(), id.as_ref()]);
        arguments.into_iter().map(Into::into).collect()
    }

    fn flags(&self) -> &'static [&'static str] {
        match self.kind {
            OciRuntimeKind::Runc | OciRuntimeKind::Crun => &[],
            OciRuntimeKind::Runsc if self.date() < RUNSC_MINIMUM => {
                &["--platform=ptrace", "--network=none"]
            }
            OciRuntimeKind::Runsc => &[
                "--platform=systrap",
                "--network=none",
                // No access to host resources except files. No overlay, because runsc would create
                // its backing file in the image.
                "--overlay2=none",
                "--host-uds=none",
                "--host-fifo=none",
                // Apply the seccomp list to gVisor's own kernel as well.
                "--oci-seccomp",
            ],
        }
    }

    /// The date in a version such as `release-20240729.0`. Versions without a date count as new.
    fn date(&self) -> u32 {
        release_date(&self.version).unwrap_or(u32::MAX)
    }
}

/// Extracts the version from output such as `runc version 1.1.5`.
fn version_in(output: &str) -> Option<String> {
    let (_, version) = output.lines().next()?.split_once(" version ")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.~_".contains(c);
    let version: String = version.trim().chars().take_while(|c| fits(*c)).take(64).collect();
    (!version.is_empty()).then_some(version)
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
