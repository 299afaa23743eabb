//! The messages, one enum for each direction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GuestWorkflow;
use crate::sandbox::{GuestPath, Limits};
use crate::{EffectId, EffectResult, NotCanonical, Outcome, RunEvent, Sha256Hex, Step};

/// The version of what is said here. An agent of another version is not talked to.
pub const PROTOCOL: u32 = 2;

/// What the host says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "to_guest", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToGuest {
    /// Fresh randomness and the time, before anything else in a clone. A clone that was not told
    /// draws the same random numbers as every other clone of its template.
    Reseed {
        /// 32 random bytes in hexadecimal.
        seed: String,
        /// Milliseconds since 1970.
        unix_ms: u64,
    },
    /// A file is coming, as data, and then [`ToGuest::End`].
    Put {
        /// Under which folder.
        place: Place,
        /// Where below it.
        path: GuestPath,
    },
    /// No more data.
    End,
    /// Start an interpreter that waits until there is a program for it; for templates.
    Park {
        /// The interpreter and its arguments.
        argv: Vec<String>,
    },
    /// Run a program. Its standard input follows as data and [`ToGuest::End`].
    Run(RunRequest),
    /// Stop the program that runs.
    Kill,
    /// Which files are in `/workspace`?
    List {
        /// Only those below this folder of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<GuestPath>,
        /// The most files that are wanted.
        most: u32,
    },
    /// Send a file from below `/workspace`.
    Get {
        /// Where it is.
        path: GuestPath,
        /// The most bytes that are wanted.
        most_bytes: u64,
    },
    /// Start a workflow inside.
    Start(Box<GuestWorkflow>),
    /// The result of an effect that the workflow asked for.
    Result {
        /// The effect.
        id: EffectId,
        /// What came of it.
        result: Box<EffectResult>,
    },
}

/// Where a file is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// `/workspace`: the program may change it.
    Workspace,
    /// `/inputs`: the program may read it.
    Inputs,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// First the program, looked for in `/usr/local/bin:/usr/bin:/bin`.
    pub argv: Vec<String>,
    /// Variables beside the usual ones.
    pub env: BTreeMap<String, String>,
    /// What it may use. The agent holds what it can; the host holds the rest and does not rely on
    /// the agent.
    pub limits: Limits,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from_guest", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromGuest {
    /// The agent is up. Said once, first.
    Ready {
        /// The version it speaks.
        protocol: u32,
    },
    /// What was asked for is done.
    Done,
    /// What was asked for is not done; the agent goes on.
    Refused {
        /// Why, in words.
        why: String,
    },
    /// The program ended.
    Ended(Ended),
    /// The files that were asked for, sorted by path.
    Listing {
        /// Regular files.
        files: Vec<FoundFile>,
        /// Whatever else is there, in words: links, devices, names that are not text, the rest of
        /// a folder with too many files.
        others: Vec<String>,
    },
    /// No more data.
    End,
    /// The workflow's next step.
    Step(Box<SaidStep>),
}

/// A step as the agent says it: what it asks for, by the hash of the request. The host makes the
/// same step by itself, and performs its own effects where the hashes are equal. Prompts would be
/// nearly all that is said, and nearly all of a prompt was said before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidStep {
    /// Effects to perform.
    pub perform: Vec<(EffectId, Sha256Hex)>,
    /// Events to publish.
    pub publish: Vec<RunEvent>,
    /// The end, where this is the last step.
    pub outcome: Option<Outcome>,
}

impl SaidStep {
    /// What is said of a step.
    pub fn of(step: Step) -> Result<Self, NotCanonical> {
        let Step { perform, publish, outcome } = step;
        let perform = perform.into_iter().map(|(id, effect)| Ok((id, effect.request_hash()?)));
        Ok(Self { perform: perform.collect::<Result<_, _>>()?, publish, outcome })
    }
}

/// A file in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundFile {
    /// From the folder that was asked about.
    pub path: GuestPath,
    /// Its length now.
    pub bytes: u64,
}

/// How a program ended, as the agent saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The way.
    pub way: WayToEnd,
    /// Whether it printed more than was kept.
    pub stdout_truncated: bool,
    /// Whether it printed more on standard error than was kept.
    pub stderr_truncated: bool,
    /// Processes that it left behind and that were stopped.
    pub left_running: u32,
}

/// The ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WayToEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// The agent stopped it at the wall limit.
    TimedOut,
    /// The kernel that the agent runs on stopped it for its memory.
    OutOfMemory,
    /// The host asked for it.
    Killed,
}
