//! Workflows that can run inside a guest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debate::{Debate, DebateInput, InvalidDebate, log_json};
use crate::sandbox::GuestPath;
use crate::{EffectId, EffectResult, Step, UnexpectedResult, Workflow};

/// A workflow and what it starts with. The guest holds the state machine; the host performs its
/// effects, and keeps the journal, the budget and every key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workflow", rename_all = "snake_case", deny_unknown_fields)]
pub enum GuestWorkflow {
    /// A debate about one move.
    Debate {
        /// What it starts with.
        input: Box<DebateInput>,
    },
}

/// A workflow that cannot run inside a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this workflow cannot run inside a guest")]
pub struct UnknownWorkflow;

impl GuestWorkflow {
    /// The machine, ready to start.
    pub fn build(self) -> Result<GuestMachine, UnknownWorkflow> {
        let Self::Debate { input } = self;
        GuestMachine::new(*input).map_err(|_| UnknownWorkflow)
    }
}

/// A workflow inside a guest, or beside one that it is compared with.
#[derive(Debug)]
pub struct GuestMachine(Box<Debate>);

impl GuestMachine {
    /// The folder of the workspace in which [its files](Self::files) are.
    pub const LOG_FOLDER: &str = "logs";

    /// A debate about one move.
    pub fn new(input: DebateInput) -> Result<Self, InvalidDebate> {
        Ok(Self(Box::new(Debate::new(input)?)))
    }

    /// What it has to write down, by path below the workspace: its conversations, `logs/i1.json` and on. The host can work out the
    /// same bytes, and compares.
    pub fn files(&self) -> BTreeMap<GuestPath, String> {
        let file = |(name, log): (&String, &Vec<_>)| {
            let path = format!("{}/{name}.json", Self::LOG_FOLDER).parse().ok()?;
            Some((path, log_json(log)))
        };
        self.0.logs().iter().filter_map(file).collect()
    }
}

impl Workflow for GuestMachine {
    fn start(&mut self) -> Step {
        self.0.start()
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        self.0.resume(id, result)
    }
}
