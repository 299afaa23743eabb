//! Protocol messages, one enum per direction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GuestWorkflow;
use crate::sandbox::{GuestPath, SandboxLimits};
use crate::{CanonicalJsonError, EffectId, EffectResult, Outcome, RunEvent, Sha256Hex, Step};

/// The protocol version. The host refuses agents of another version.
pub const PROTOCOL: u32 = 2;

/// Messages from the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "to_guest", rename_all = "snake_case", deny_unknown_fields)]
pub enum HostMessage {
    /// New random seed and the current time, sent first to a clone. Without it, all clones of a
    /// template would draw the same random numbers.
    Reseed {
        /// 32 random bytes in hexadecimal.
        seed: String,
        /// Milliseconds since 1970.
        unix_ms: u64,
    },
    /// A file follows as data, ending with [`HostMessage::End`].
    Put {
        /// The target directory.
        place: Place,
        /// The path below it.
        path: GuestPath,
    },
    /// End of data.
    End,
    /// Start an interpreter that waits for its program; used for templates.
    Park {
        /// The interpreter and its arguments.
        argv: Vec<String>,
    },
    /// Run a program. Its standard input follows as data, ending with [`HostMessage::End`].
    Run(GuestRunRequest),
    /// Kill the running program.
    Kill,
    /// List the files in `/workspace`.
    List {
        /// Only list files below this directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<GuestPath>,
        /// The maximum number of files to list.
        most: u32,
    },
    /// Send a file from `/workspace`.
    Get {
        /// The file's path.
        path: GuestPath,
        /// The maximum number of bytes to send.
        most_bytes: u64,
    },
    /// Try to break out of the sandbox: open this host file, connect to this host port.
    Probe {
        /// A file that exists only on the host.
        host_file: String,
        /// A port on which the host listens on loopback.
        port: u16,
    },
    /// Start a workflow in the guest.
    Start(Box<GuestWorkflow>),
    /// The result of an effect requested by the workflow.
    Result {
        /// The effect.
        id: EffectId,
        /// The result.
        result: Box<EffectResult>,
    },
}

/// The target directory of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// `/workspace`, writable by the program.
    Workspace,
    /// `/inputs`, read-only for the program.
    Inputs,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestRunRequest {
    /// The command line. The program is searched in `/usr/local/bin:/usr/bin:/bin`.
    pub argv: Vec<String>,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// Resource limits. The agent enforces what it can; the host enforces the rest and does not
    /// rely on the agent.
    pub limits: SandboxLimits,
}

/// Messages from the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from_guest", rename_all = "snake_case", deny_unknown_fields)]
pub enum GuestMessage {
    /// The agent is ready. Sent once, as the first message.
    Ready {
        /// The agent's protocol version.
        protocol: u32,
    },
    /// The request succeeded.
    Done,
    /// The request was refused; the agent keeps running.
    Refused {
        /// The reason.
        why: String,
    },
    /// The program ended.
    Ended(ProgramExit),
    /// The requested file list, sorted by path.
    Listing {
        /// Regular files.
        files: Vec<GuestFile>,
        /// Descriptions of everything else: links, devices, names that are not UTF-8, and the
        /// remainder of a directory with too many files.
        others: Vec<String>,
    },
    /// End of data.
    End,
    /// For each test of a probe, whether the sandbox held.
    Probed {
        /// By the test's key.
        held: BTreeMap<String, bool>,
    },
    /// The workflow's next step.
    Step(Box<StepSummary>),
}

/// A step as sent by the agent, with a request hash instead of each effect. The host computes the
/// same step itself and performs its own effects if the hashes match. This avoids sending prompts,
/// which would be nearly all of the traffic and mostly repeat earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSummary {
    /// Effects to perform.
    pub perform: Vec<(EffectId, Sha256Hex)>,
    /// Events to publish.
    pub publish: Vec<RunEvent>,
    /// The outcome, if this is the last step.
    pub outcome: Option<Outcome>,
}

impl StepSummary {
    /// Converts a step.
    pub fn of(step: Step) -> Result<Self, CanonicalJsonError> {
        let Step { perform, publish, outcome } = step;
        let perform = perform.into_iter().map(|(id, effect)| Ok((id, effect.request_hash()?)));
        Ok(Self { perform: perform.collect::<Result<_, _>>()?, publish, outcome })
    }
}

/// A file in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestFile {
    /// Relative to the listed directory.
    pub path: GuestPath,
    /// The current size.
    pub bytes: u64,
}

/// How a program ended, as seen by the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramExit {
    /// The cause.
    pub way: ExitCause,
    /// Whether standard output exceeded the limit.
    pub stdout_truncated: bool,
    /// Whether standard error exceeded the limit.
    pub stderr_truncated: bool,
    /// The number of leftover processes that were killed.
    pub left_running: u32,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// It exited with this code.
    Exited(i32),
    /// It was terminated by this signal.
    Signalled(i32),
    /// The agent killed it at the wall-clock limit.
    TimedOut,
    /// The guest kernel killed it for exceeding its memory.
    OutOfMemory,
    /// The host requested it.
    Killed,
}
