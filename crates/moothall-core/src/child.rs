//! A workflow inside a workflow: how it is asked for and what is told of its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debate::DebateInput;
use crate::sandbox::{Attestation, IsolationClass};
use crate::{NotCanonical, Outcome, Sha256Hex, canonical_json};

/// A child and what it starts with. Its effect ids begin with the id of the effect that asks for it,
/// and its events are events of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "child", rename_all = "snake_case")]
pub enum ChildRequest {
    /// A debate about one move.
    Debate(Box<DebateInput>),
}

impl ChildRequest {
    /// The hash of what it starts with.
    pub fn hash(&self) -> Result<Sha256Hex, NotCanonical> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }
}

/// How a child ended, and where it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildEnd {
    /// What it came to.
    pub outcome: Outcome,
    /// The walls around it.
    pub isolation: Isolation,
}

/// Where a child ran. Nothing in it differs between two equal runs on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// The weakest class that any part of it ran in.
    pub class: IsolationClass,
    /// Why it is not the class that was wanted, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// What is known about the sandbox, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Box<Attestation>>,
    /// The hashes of the files that were read back from it, by name: `i1.json`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logs: BTreeMap<String, Sha256Hex>,
}

impl Isolation {
    /// In the program's own process.
    pub fn none(fallback: Option<String>) -> Self {
        Self { class: IsolationClass::None, fallback, attestation: None, logs: BTreeMap::new() }
    }
}
