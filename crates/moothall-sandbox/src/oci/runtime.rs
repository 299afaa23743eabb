//! The programs that run bundles: where they are, what they are called with and what they cost.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use moothall_core::sandbox::{IsolationClass, Limits};

use super::Kernel;
use super::cgroup::{Cgroups, Controller, Resources};
use crate::runtime_version::{RUNSC_MINIMUM, release_date};
use crate::{EngineName, SandboxError};

/// Folders that are looked at beside those of `PATH`: a user's path need not hold root's programs.
const MORE_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// gVisor's own memory, which its program's limit does not count: measured 54 MB.
const GVISOR_BYTES: u64 = 60 << 20;

/// What the agent takes beside the program. The program's limit counts it.
const AGENT_BYTES: u64 = 5 << 20;

/// gVisor's kernel is a program with threads of its own. With fewer it crashes where a program
/// only reached its limit.
const GVISOR_THREADS: u64 = 512;

/// A runtime starts with a few threads of its own inside before it becomes the agent.
const START_THREADS: u64 = 20;

/// Which runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Runsc,
    Runc,
    Crun,
}

impl Kind {
    pub(super) fn of(name: EngineName) -> Option<Self> {
        match name {
            EngineName::Runsc => Some(Self::Runsc),
            EngineName::Runc => Some(Self::Runc),
            EngineName::Crun => Some(Self::Crun),
            EngineName::Microvm => None,
        }
    }

    pub(super) fn name(self) -> EngineName {
        match self {
            Self::Runsc => EngineName::Runsc,
            Self::Runc => EngineName::Runc,
            Self::Crun => EngineName::Crun,
        }
    }

    pub(super) fn class(self) -> IsolationClass {
        match self {
            Self::Runsc => IsolationClass::UserKernel,
            Self::Runc | Self::Crun => IsolationClass::SharedKernel,
        }
    }

    pub(super) fn kernel(self) -> Kernel {
        match self {
            Self::Runsc => Kernel::Gvisor,
            Self::Runc | Self::Crun => Kernel::Host,
        }
    }

    /// The host's memory that one sandbox takes beyond the program's limit.
    pub(super) fn own_bytes(self) -> u64 {
        match self {
            Self::Runsc => GVISOR_BYTES,
            Self::Runc | Self::Crun => AGENT_BYTES,
        }
    }

    /// Who holds the limit that a controller is for.
    pub(super) fn holder(self, controller: Controller) -> String {
        match (self, controller) {
            (Self::Runsc, Controller::Memory) => {
                format!("host cgroup, with {} MiB for gvisor", GVISOR_BYTES >> 20)
            }
            (Self::Runsc, Controller::Pids) => {
                format!(
                    "gvisor user limit; host cgroup, at least {GVISOR_THREADS} with its threads"
                )
            }
            _ => "host cgroup".to_owned(),
        }
    }

    /// What the host's control groups hold of a sandbox with these limits.
    pub(super) fn resources(self, limits: &Limits) -> Resources {
        let pids = u64::from(limits.pids);
        match self {
            Self::Runsc => Resources::new(limits, GVISOR_BYTES, pids.max(GVISOR_THREADS)),
            // One more for the agent.
            Self::Runc | Self::Crun => Resources::new(limits, 0, (pids + 1).max(START_THREADS)),
        }
    }
}

/// A runtime that is there.
#[derive(Debug)]
pub(super) struct Runtime {
    pub(super) kind: Kind,
    pub(super) program: PathBuf,
    pub(super) version: String,
}

/// Where a runtime is installed.
pub(crate) fn program(name: EngineName) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name.as_str()))
        .find(|file| file.is_absolute() && file.is_file())
}

impl Runtime {
    /// Finds the program and asks for its version.
    pub(super) fn find(kind: Kind) -> Result<Self, SandboxError> {
        let name = kind.name().as_str();
        let missing = || SandboxError::Missing { program: name.to_owned() };
        let program = program(kind.name()).ok_or_else(missing)?;
        let said = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(SandboxError::host(format!("{name} cannot be asked for its version")))?;
        let said = String::from_utf8_lossy(&said.stdout);
        let version = version_in(&said).ok_or_else(|| SandboxError::Start {
            engine: name.to_owned(),
            problem: "it does not say its version".to_owned(),
        })?;
        Ok(Self { kind, program, version })
    }

    /// Refuses a host on which it cannot work.
    pub(super) fn check(&self, cgroups: &Cgroups) -> Result<(), SandboxError> {
        let problem = if !rustix::process::geteuid().is_root() {
            "it needs root, because limits need control groups; without root, use microvm"
        } else if self.kind == Kind::Crun && cgroups.are_hybrid() {
            "cgroups in hybrid mode: it wants all controllers in one hierarchy; use runc here"
        } else {
            return Ok(());
        };
        Err(SandboxError::Start {
            engine: self.kind.name().to_string(),
            problem: problem.to_owned(),
        })
    }

    /// The arguments that run a bundle until its end.
    pub(super) fn run(&self, state: &Path, bundle: &Path, id: &str) -> Vec<Box<OsStr>> {
        let mut arguments: Vec<&OsStr> = vec!["--root".as_ref(), state.as_ref()];
        arguments.extend(self.flags().iter().map(OsStr::new));
        arguments.push("run".as_ref());
        if self.kind == Kind::Runc {
            // Its control groups count whom the kernel killed; we remove them when we have looked.
            arguments.push("--keep".as_ref());
        }
        arguments.extend::<[&OsStr; 3]>(["--bundle".as_ref(), bundle.as_ref(), id.as_ref()]);
        arguments.into_iter().map(Into::into).collect()
    }

    fn flags(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Runc | Kind::Crun => &[],
            Kind::Runsc if self.date() < RUNSC_MINIMUM => &["--platform=ptrace", "--network=none"],
            Kind::Runsc => &[
                "--platform=systrap",
                "--network=none",
                // Nothing of the host but files, and those as they are: an overlay would put a
                // file of its own beside the image.
                "--overlay2=none",
                "--host-uds=none",
                "--host-fifo=none",
                // Fewer calls of its own kernel, too.
                "--oci-seccomp",
            ],
        }
    }

    /// The day of a version such as `release-20240729.0`; versions without one are new.
    fn date(&self) -> u32 {
        release_date(&self.version).unwrap_or(u32::MAX)
    }
}

/// The version in `runc version 1.1.5`, and nothing that is not a version.
fn version_in(said: &str) -> Option<String> {
    let (_, version) = said.lines().next()?.split_once(" version ")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.~_".contains(c);
    let version: String = version.trim().chars().take_while(|c| fits(*c)).take(64).collect();
    (!version.is_empty()).then_some(version)
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
