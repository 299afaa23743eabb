//! Requests of the edit workflow to the draft store, and their replies. Both are file formats:
//! journals contain them.

use serde::{Deserialize, Serialize};

use super::answer::EditProposal;
use crate::drafts::{DraftId, DraftState, JournalFinding, LineComment, RelPath};
use crate::{CanonicalJsonError, Sha256Hex, canonical_json};

/// A request to the draft store. Each combines operations that every worker has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum DraftCall {
    /// List the files that can be drafted.
    Files,
    /// Open drafts of files and read them.
    Read {
        /// The files.
        paths: Vec<RelPath>,
    },
    /// Write drafts and submit them together.
    Submit(EditProposal),
    /// Wait for a reviewer's decision.
    Wait {
        /// The drafts to wait for.
        drafts: Vec<DraftId>,
        /// The timeout.
        seconds: u64,
    },
}

impl DraftCall {
    /// The request hash that is compared on replay.
    pub fn hash(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        let asked = match self {
            // Paths are map keys in `files`, and keys of canonical JSON must be ASCII.
            Self::Submit(EditProposal { summary, files }) => {
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

/// The content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// The path.
    pub path: RelPath,
    /// The content.
    pub text: String,
}

/// The status of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmissionStatus {
    /// The drafts.
    pub drafts: Vec<DraftId>,
    /// Their state.
    pub state: DraftState,
    /// The gate's findings.
    pub findings: Vec<JournalFinding>,
    /// Output of failed checks, and concerns of a reviewing model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The reviewer's comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The reviewer's comments on lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineComment>,
}

/// The answer to a [`DraftCall`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum DraftReply {
    /// The files that can be drafted.
    Files {
        /// The paths, sorted.
        paths: Vec<RelPath>,
    },
    /// The file contents.
    Read {
        /// Files that can be shown to a model.
        files: Vec<FileText>,
        /// Why the other files were refused.
        refused: Vec<String>,
    },
    /// The result of a submission.
    Submitted(SubmissionStatus),
    /// The store refused the request.
    Refused {
        /// The reason.
        why: String,
    },
    /// The store failed.
    Failed {
        /// The error.
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
