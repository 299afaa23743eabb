//! Types for running untrusted programs: isolation classes, limits, execution requests and results.
//!
//! These are file formats, used in journals, receipts and guest frames.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{CanonicalJsonError, EffectId, RuleId, Sha256Hex, canonical_json};

mod guest_path;

pub use self::guest_path::{GuestPath, InvalidGuestPath};

/// How strongly a program is isolated from the host, weakest first. Measured by tests on the host,
/// never assumed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum IsolationClass {
    /// No isolation: runs in this process. Only for text, never for programs.
    None,
    /// A container: the program uses the host's kernel.
    SharedKernel,
    /// A virtual machine on an emulated CPU: it has its own kernel, but the emulator's developers
    /// do not support it as a security boundary.
    EmulatedVm,
    /// A user-space kernel (gVisor) between the program and the host's kernel.
    UserKernel,
    /// A virtual machine with hardware virtualization.
    HardwareVm,
}

impl IsolationClass {
    /// All sandbox classes, strongest first.
    pub const STRONGEST_FIRST: [Self; 4] =
        [Self::HardwareVm, Self::UserKernel, Self::EmulatedVm, Self::SharedKernel];

    /// The name used in files and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SharedKernel => "shared-kernel",
            Self::EmulatedVm => "emulated-vm",
            Self::UserKernel => "user-kernel",
            Self::HardwareVm => "hardware-vm",
        }
    }
}

impl fmt::Display for IsolationClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for IsolationClass {
    type Err = UnknownIsolationClass;

    fn from_str(text: &str) -> Result<Self, UnknownIsolationClass> {
        Self::STRONGEST_FIRST
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or(UnknownIsolationClass)
    }
}

/// The text is not the name of an isolation class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected hardware-vm, user-kernel, emulated-vm or shared-kernel")]
pub struct UnknownIsolationClass;

/// Resource limits of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxLimits {
    /// Wall-clock time from handing over the sandbox to the end of the program.
    pub wall_ms: u64,
    /// CPU time of the process that uses the most.
    pub cpu_seconds: u64,
    /// Share of one CPU in thousandths.
    pub cpu_permille: u32,
    /// Memory of the program, including files in memory-backed file systems.
    pub memory_bytes: u64,
    /// Concurrent processes and threads.
    pub pids: u32,
    /// Size of standard output and of standard error, each.
    pub output_bytes: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Total size of the files under `/workspace` and under `/tmp`, each.
    pub disk_bytes: u64,
    /// Open files per process.
    pub open_files: u32,
}

impl Default for SandboxLimits {
    /// 256 MiB of memory, half a CPU, 64 MiB of files.
    fn default() -> Self {
        Self {
            wall_ms: 30_000,
            cpu_seconds: 60,
            cpu_permille: 500,
            memory_bytes: 256 << 20,
            pids: 64,
            output_bytes: 1 << 20,
            file_bytes: 64 << 20,
            disk_bytes: 64 << 20,
            open_files: 256,
        }
    }
}

/// The name of a limit, for attestations and findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitName {
    /// [`SandboxLimits::wall_ms`].
    Wall,
    /// [`SandboxLimits::cpu_seconds`].
    CpuTime,
    /// [`SandboxLimits::cpu_permille`].
    CpuShare,
    /// [`SandboxLimits::memory_bytes`].
    Memory,
    /// [`SandboxLimits::pids`].
    Pids,
    /// [`SandboxLimits::output_bytes`].
    Output,
    /// [`SandboxLimits::file_bytes`].
    FileSize,
    /// [`SandboxLimits::disk_bytes`].
    Disk,
    /// [`SandboxLimits::open_files`].
    OpenFiles,
}

impl LimitName {
    /// All limits.
    pub const ALL: [Self; 9] = [
        Self::Wall,
        Self::CpuTime,
        Self::CpuShare,
        Self::Memory,
        Self::Pids,
        Self::Output,
        Self::FileSize,
        Self::Disk,
        Self::OpenFiles,
    ];
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wall => "wall",
            Self::CpuTime => "cpu-time",
            Self::CpuShare => "cpu-share",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Output => "output",
            Self::FileSize => "file-size",
            Self::Disk => "disk",
            Self::OpenFiles => "open-files",
        })
    }
}

/// A program to run in a fresh sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest {
    /// The image, such as `python`, `data` or `debate`.
    pub image: String,
    /// The program's files by path under `/workspace`, written before it starts. The program may
    /// change them.
    pub sources: BTreeMap<GuestPath, String>,
    /// Input files by path under `/inputs`, read-only for the program. Their content is stored
    /// beside the journal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<GuestPath, FileRef>,
    /// The command and its arguments. Runs in `/workspace`.
    pub argv: Vec<String>,
    /// Environment variables in addition to the default ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Standard input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdin: String,
    /// Resource limits.
    pub limits: SandboxLimits,
    /// Whether to return the files the program leaves under `/workspace/out`.
    #[serde(default)]
    pub collect: bool,
}

impl ExecuteRequest {
    /// A single-file Python program with default limits.
    pub fn python(image: impl Into<String>, script: GuestPath, source: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            argv: vec!["python3".to_owned(), script.to_string()],
            sources: BTreeMap::from([(script, source.into())]),
            inputs: BTreeMap::new(),
            env: BTreeMap::new(),
            stdin: String::new(),
            limits: SandboxLimits::default(),
            collect: false,
        }
    }

    /// The folder below `/workspace` whose files are returned.
    pub const OUTPUT_FOLDER: &str = "out";

    /// The hash a replay compares with the journal. Maps are hashed as lists of pairs, because file
    /// names may be non-ASCII; sources are hashed by their digests.
    pub fn hash(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        let sources: Vec<_> = self
            .sources
            .iter()
            .map(|(path, text)| (path, Sha256Hex::of(text.as_bytes())))
            .collect();
        let asked = json!({
            "image": self.image,
            "sources": sources,
            "inputs": self.inputs.iter().collect::<Vec<_>>(),
            "argv": self.argv,
            "env": self.env.iter().collect::<Vec<_>>(),
            "stdin": self.stdin,
            "limits": self.limits,
            "collect": self.collect,
        });
        Ok(Sha256Hex::of(canonical_json(&asked)?.as_bytes()))
    }
}

/// A reference to a file by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct FileRef {
    /// The hash of its content.
    pub sha256: Sha256Hex,
    /// Its size in bytes.
    pub bytes: u64,
}

impl FileRef {
    /// The reference for this content.
    pub fn of(bytes: &[u8]) -> Self {
        Self { sha256: Sha256Hex::of(bytes), bytes: bytes.len() as u64 }
    }
}

/// The result of running a program. A failing program is a valid result, not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxExecution {
    /// How the program ended.
    pub exit: ExecutionExit,
    /// Standard output. Invalid UTF-8 is replaced.
    pub stdout: CapturedOutput,
    /// Standard error.
    pub stderr: CapturedOutput,
    /// Files left under `/workspace/out`, by path relative to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<GuestPath, FileRef>,
    /// Files that were not returned, with the reason: links, devices, too many or too large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// The sandbox the program ran in.
    pub attestation: SandboxAttestation,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "exit", rename_all = "snake_case", deny_unknown_fields)]
#[derive(ts_rs::TS)]
#[ts(rename = "Exit")]
pub enum ExecutionExit {
    /// The program exited.
    Exited {
        /// The exit code. 0 alone does not count as success.
        code: i32,
    },
    /// The program was killed by a signal that the sandbox did not send.
    Signalled {
        /// The signal number.
        signal: i32,
    },
    /// The program was stopped at the wall-clock limit.
    TimedOut,
    /// The program was stopped at the memory limit.
    OutOfMemory,
    /// The sandbox crashed. Output up to that point is kept.
    SandboxDied {
        /// The known details.
        detail: String,
    },
}

impl ExecutionExit {
    /// Whether the program exited with code 0.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }
}

impl fmt::Display for ExecutionExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("stopped at the time limit"),
            Self::OutOfMemory => f.write_str("stopped: out of memory"),
            Self::SandboxDied { detail } => write!(f, "the sandbox died: {detail}"),
        }
    }
}

/// Standard output or standard error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedOutput {
    /// The text, up to the limit.
    pub text: String,
    /// Whether output was cut at the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Describes the sandbox a program ran in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxAttestation {
    /// The engine: `microvm`, `runsc`, `runc` or `crun`.
    pub engine: String,
    /// The version the engine reports.
    pub engine_version: String,
    /// The isolation class.
    pub class: IsolationClass,
    /// The image's name.
    pub image: String,
    /// The hash of the image's manifest.
    pub image_sha256: Sha256Hex,
    /// The hash of the guest agent.
    pub guest_sha256: Sha256Hex,
    /// The limits of the execution.
    pub limits: SandboxLimits,
    /// What enforces each limit, such as `guest cgroup`. Unenforced limits are not listed.
    pub held_by: BTreeMap<LimitName, String>,
    /// Self-tests run on this engine before any program, and their results.
    pub self_tests: Vec<SelfTest>,
}

impl SandboxAttestation {
    /// The limits that are not enforced.
    pub fn unenforced_limits(&self) -> Vec<LimitName> {
        LimitName::ALL.into_iter().filter(|limit| !self.held_by.contains_key(limit)).collect()
    }
}

/// The result of one isolation test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTest {
    /// The rule tested, such as `sandbox.root-read-only`.
    pub rule: RuleId,
    /// Whether the test passed.
    pub held: bool,
}

/// Why a program could not be run. The cause is Moothall or the host, never the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxFailure {
    /// The kind of failure.
    pub kind: SandboxFailureKind,
    /// A readable message.
    pub detail: String,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxFailureKind {
    /// No engine on this host is strong enough.
    NoEngine,
    /// The image is missing or has changed.
    Image,
    /// An input file is missing, or the request is invalid.
    Request,
    /// The sandbox could not be started, or its connection broke, after all retries.
    Lost,
}

impl fmt::Display for SandboxFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Labels that identify a sandbox in listings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxLabels(pub BTreeMap<String, String>);

impl SandboxLabels {
    /// The labels of a run's effect.
    pub fn of_effect(run: &crate::RunId, effect: &EffectId) -> Self {
        Self::default()
            .with("run", run.as_str())
            .with("effect", effect.as_str())
            .with("project", "moothall")
    }

    /// Adds a label.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.0.insert(key.to_owned(), value.to_owned());
        self
    }
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
