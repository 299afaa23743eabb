//! The words for running a program that nobody trusts: how strong a sandbox is, what it may use, what
//! is run in it and what came of it.
//!
//! These are file formats: they stand in journals, receipts and guest frames.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{EffectId, NotCanonical, RuleId, Sha256Hex, canonical_json};

mod path;

pub use self::path::{GuestPath, InvalidGuestPath};

/// How strong the wall between a program and the host is, weakest first. Measured by running it,
/// never assumed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum IsolationClass {
    /// No wall at all: in the program's own process. Only for text, never for programs.
    None,
    /// A container: the program talks to the host's own kernel.
    SharedKernel,
    /// A virtual machine on an emulated CPU: a kernel of its own, but the emulator is not a
    /// boundary that its makers vouch for.
    EmulatedVm,
    /// A kernel in user space (gVisor) stands between the program and the host's kernel.
    UserKernel,
    /// A virtual machine on the CPU's own virtualisation.
    HardwareVm,
}

impl IsolationClass {
    /// All classes that a sandbox can have, the strongest first.
    pub const STRONGEST_FIRST: [Self; 4] =
        [Self::HardwareVm, Self::UserKernel, Self::EmulatedVm, Self::SharedKernel];

    /// The word as it stands in files and on screens.
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

/// A word that is not the name of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected hardware-vm, user-kernel, emulated-vm or shared-kernel")]
pub struct UnknownIsolationClass;

/// The most that one execution may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// From the moment the sandbox is handed over to the end of the program.
    pub wall_ms: u64,
    /// CPU time of the program's longest-running process.
    pub cpu_seconds: u64,
    /// Share of one CPU in thousandths.
    pub cpu_permille: u32,
    /// Memory of the program and of the files it keeps in memory.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub pids: u32,
    /// Standard output and standard error, each.
    pub output_bytes: u64,
    /// One file.
    pub file_bytes: u64,
    /// All files under `/workspace`, and all under `/tmp`, each.
    pub disk_bytes: u64,
    /// Open files of one process.
    pub open_files: u32,
}

impl Default for Limits {
    /// 256 MiB, half a CPU, 64 MiB of files.
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

/// A limit by name, for attestations and findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitName {
    /// [`Limits::wall_ms`].
    Wall,
    /// [`Limits::cpu_seconds`].
    CpuTime,
    /// [`Limits::cpu_permille`].
    CpuShare,
    /// [`Limits::memory_bytes`].
    Memory,
    /// [`Limits::pids`].
    Pids,
    /// [`Limits::output_bytes`].
    Output,
    /// [`Limits::file_bytes`].
    FileSize,
    /// [`Limits::disk_bytes`].
    Disk,
    /// [`Limits::open_files`].
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

/// A program to run in a sandbox that nobody used before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest {
    /// The image: `python`, `data`, `debate`.
    pub image: String,
    /// The program's files by path under `/workspace`, put there before it starts. The program may
    /// change them.
    pub sources: BTreeMap<GuestPath, String>,
    /// Files that were given: by path under `/inputs`, which the program can read and not change.
    /// Their bytes are kept beside the journal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<GuestPath, FileRef>,
    /// The command, first the program. Run in `/workspace`.
    pub argv: Vec<String>,
    /// Variables beside the usual ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Standard input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdin: String,
    /// The most it may use.
    pub limits: Limits,
    /// Whether files that the program left under `/workspace/out` are brought back.
    #[serde(default)]
    pub collect: bool,
}

impl ExecuteRequest {
    /// A Python program of one file, with the usual limits and nothing else.
    pub fn python(image: impl Into<String>, script: GuestPath, source: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            argv: vec!["python3".to_owned(), script.to_string()],
            sources: BTreeMap::from([(script, source.into())]),
            inputs: BTreeMap::new(),
            env: BTreeMap::new(),
            stdin: String::new(),
            limits: Limits::default(),
            collect: false,
        }
    }

    /// The folder below `/workspace` whose files are brought back.
    pub const OUTPUT_FOLDER: &str = "out";

    /// The hash that a journal compares when it replays. Maps count as lists of pairs, because
    /// file names need not be ASCII; sources count by their hashes.
    pub fn hash(&self) -> Result<Sha256Hex, NotCanonical> {
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

/// A file by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct FileRef {
    /// The hash of its bytes.
    pub sha256: Sha256Hex,
    /// How many there are.
    pub bytes: u64,
}

impl FileRef {
    /// The file that holds these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { sha256: Sha256Hex::of(bytes), bytes: bytes.len() as u64 }
    }
}

/// What came of running a program. A program that fails is not an error: that is what is said here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// How it ended.
    pub exit: Exit,
    /// What it printed. Bytes that are not text are replaced.
    pub stdout: Output,
    /// What it printed on standard error.
    pub stderr: Output,
    /// Files it left under `/workspace/out`, by path from there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<GuestPath, FileRef>,
    /// Files that were not brought back, and why: links, devices, too many, too large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// The sandbox it ran in.
    pub attestation: Attestation,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "exit", rename_all = "snake_case", deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub enum Exit {
    /// By itself.
    Exited {
        /// 0 is what programs call success. It is not what we call success.
        code: i32,
    },
    /// By a signal that was not ours.
    Signalled {
        /// Its number.
        signal: i32,
    },
    /// It was stopped at the wall limit.
    TimedOut,
    /// It was stopped because it used up the memory.
    OutOfMemory,
    /// The sandbox itself ended under it. What it printed until then is kept.
    SandboxDied {
        /// What is known about it.
        detail: String,
    },
}

impl Exit {
    /// Whether the program ended by itself with 0.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }
}

impl fmt::Display for Exit {
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

/// One of the two streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// What was kept.
    pub text: String,
    /// Whether there was more than the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What is known about the sandbox in which something ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attestation {
    /// `microvm`, `runsc`, `runc`, `crun`.
    pub engine: String,
    /// The version of what runs it, as it says itself.
    pub engine_version: String,
    /// How strong the wall is.
    pub class: IsolationClass,
    /// The image's name.
    pub image: String,
    /// The hash of the image's manifest.
    pub image_sha256: Sha256Hex,
    /// The hash of the agent inside.
    pub guest_sha256: Sha256Hex,
    /// What was allowed.
    pub limits: Limits,
    /// Who holds each limit, such as `guest cgroup`; a limit that nobody holds is not listed.
    pub held_by: BTreeMap<LimitName, String>,
    /// What was tried on this engine before anything ran on it, and whether it held.
    pub self_tests: Vec<SelfTest>,
}

impl Attestation {
    /// The limits that nobody holds.
    pub fn not_held(&self) -> Vec<LimitName> {
        LimitName::ALL.into_iter().filter(|limit| !self.held_by.contains_key(limit)).collect()
    }
}

/// One thing that was tried in a sandbox to see whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTest {
    /// Such as `sandbox.root-read-only`.
    pub rule: RuleId,
    /// Whether it held.
    pub held: bool,
}

/// Why nothing could be run. It is our failure or the host's, never the program's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxFailure {
    /// What kind.
    pub kind: SandboxFailureKind,
    /// In words.
    pub detail: String,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxFailureKind {
    /// No engine on this host is as strong as it must be.
    NoEngine,
    /// The image is not there, or it is not what it was.
    Image,
    /// A file that was to be given is missing, or the request cannot be carried out.
    Request,
    /// A sandbox could not be started, or the way to it broke, after all retries.
    Lost,
}

impl fmt::Display for SandboxFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Whose a sandbox is, for people who look at a list of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels(pub BTreeMap<String, String>);

impl Labels {
    /// The usual labels of an effect of a run.
    pub fn of_effect(run: &crate::RunId, effect: &EffectId) -> Self {
        let pairs = [("run", run.as_str()), ("effect", effect.as_str()), ("project", "moothall")];
        Self(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
