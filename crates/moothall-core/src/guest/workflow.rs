//! Workflows that can run inside a guest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debate::{Debate, DebateInput, InvalidDebate, log_json};
use crate::sandbox::GuestPath;
use crate::{EffectId, EffectResult, Step, UnexpectedResult, Workflow};

/// A workflow and its input. The guest runs the state machine; the host performs its effects and
/// keeps the journal, the budget and all API keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workflow", rename_all = "snake_case", deny_unknown_fields)]
pub enum GuestWorkflow {
    /// A debate about one move.
    Debate {
        /// The input of the debate.
        input: Box<DebateInput>,
    },
}

/// A workflow that cannot run inside a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this workflow cannot run inside a guest")]
pub struct UnknownWorkflow;

impl GuestWorkflow {
    /// Builds the state machine, ready to start.
    pub fn build(self) -> Result<GuestStateMachine, UnknownWorkflow> {
        let Self::Debate { input } = self;
        GuestStateMachine::new(*input).map_err(|_| UnknownWorkflow)
    }
}

/// A workflow state machine, used in the guest and by the host to verify the guest.
#[derive(Debug)]
pub struct GuestStateMachine(Box<Debate>);

impl GuestStateMachine {
    /// The workspace directory of [its files](Self::files).
    pub const LOG_FOLDER: &str = "logs";

    /// Creates a debate about one move.
    pub fn new(input: DebateInput) -> Result<Self, InvalidDebate> {
        Ok(Self(Box::new(Debate::new(input)?)))
    }

    /// The files it writes, by path below the workspace: the conversations `logs/i1.json`, …. The
    /// host computes the same bytes and compares them.
    pub fn files(&self) -> BTreeMap<GuestPath, String> {
        let file = |(name, log): (&String, &Vec<_>)| {
            let path = format!("{}/{name}.json", Self::LOG_FOLDER).parse().ok()?;
            Some((path, log_json(log)))
        };
        self.0.logs().iter().filter_map(file).collect()
    }
}

impl Workflow for GuestStateMachine {
    fn start(&mut self) -> Step {
        self.0.start()
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        self.0.resume(id, result)
    }
}
