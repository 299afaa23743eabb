//! Child workflows: how a workflow starts one, and how its end is reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debate::DebateInput;
use crate::sandbox::{IsolationClass, SandboxAttestation};
use crate::{CanonicalJsonError, Outcome, Sha256Hex, canonical_json};

/// A child workflow and its input. Its effect ids are prefixed with the id of the effect that
/// starts it, and its events belong to the parent run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "child", rename_all = "snake_case")]
pub enum ChildRequest {
    /// A debate about one move.
    Debate(Box<DebateInput>),
}

impl ChildRequest {
    /// The hash of the request.
    pub fn hash(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }
}

/// How a child workflow ended, and where it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildEnd {
    /// The child's outcome.
    pub outcome: Outcome,
    /// The isolation it ran with.
    pub isolation: ChildIsolation,
}

/// Where a child workflow ran. Two equal runs on one host produce equal values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildIsolation {
    /// The weakest isolation class that any part of the child ran in.
    pub class: IsolationClass,
    /// Why `class` differs from the requested class, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The attestation of the sandbox, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Box<SandboxAttestation>>,
    /// Hashes of the log files read back from the sandbox, by file name (`i1.json`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logs: BTreeMap<String, Sha256Hex>,
}

impl ChildIsolation {
    /// No isolation: the child ran in this process.
    pub fn none(fallback: Option<String>) -> Self {
        Self { class: IsolationClass::None, fallback, attestation: None, logs: BTreeMap::new() }
    }
}
