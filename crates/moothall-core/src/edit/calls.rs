//! What the agent asks of the store of drafts, and what it is told. File formats: they stand in
//! journals.

use serde::{Deserialize, Serialize};

use super::answer::Change;
use crate::drafts::{DraftId, JudgedFinding, RelPath, State};
use crate::{NotCanonical, Sha256Hex, canonical_json};

/// One wish. These are the operations of every worker, put together as an agent needs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum DraftCall {
    /// The names of files that may be drafted.
    Files,
    /// Open drafts of files and read them.
    Read {
        /// Which.
        paths: Vec<RelPath>,
    },
    /// Write drafts and hand them in together.
    Submit(Change),
    /// Wait until a person has decided.
    Wait {
        /// About what.
        drafts: Vec<DraftId>,
        /// For how long.
        seconds: u64,
    },
}

impl DraftCall {
    /// The hash that a journal compares when it replays.
    pub fn hash(&self) -> Result<Sha256Hex, NotCanonical> {
        let asked = match self {
            // Paths are keys there, and keys of canonical JSON are ASCII.
            Self::Submit(Change { summary, files }) => {
                serde_json::json!({"submit": summary, "files": files.iter().collect::<Vec<_>>()})
            }
            Self::Files => serde_json::json!("files"),
            Self::Read { paths } => serde_json::json!({"read": paths}),
            Self::Wait { drafts, seconds } => {
                serde_json::json!({"wait": drafts, "seconds": seconds})
            }
        };
        Ok(Sha256Hex::of(canonical_json(&asked)?.as_bytes()))
    }
}

/// A file as the agent reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Where.
    pub path: RelPath,
    /// What stands there.
    pub text: String,
}

/// Where a submission stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submitted {
    /// The drafts.
    pub drafts: Vec<DraftId>,
    /// Where they stand.
    pub state: State,
    /// What the gate saw.
    pub findings: Vec<JudgedFinding>,
    /// What checks that did not pass printed, and what a model doubts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// What a person said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// The answer to a [`DraftCall`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum DraftReply {
    /// The names.
    Files {
        /// In order.
        paths: Vec<RelPath>,
    },
    /// The texts.
    Read {
        /// Of files that may be shown to a model.
        files: Vec<FileText>,
        /// The others, and why not.
        refused: Vec<String>,
    },
    /// What came of a submission.
    Submitted(Submitted),
    /// The store says no to what was asked.
    Refused {
        /// Why.
        why: String,
    },
    /// The store broke.
    Failed {
        /// How.
        why: String,
    },
}

impl DraftReply {
    /// The variant's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Files { .. } => "files",
            Self::Read { .. } => "read",
            Self::Submitted(_) => "submitted",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
        }
    }
}
