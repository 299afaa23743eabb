//! Workflows that can run inside a guest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ask::Ask;
use crate::debate::{Debate, DebateInput, log_json};
use crate::model::ModelRequest;
use crate::sandbox::GuestPath;
use crate::{EffectId, EffectResult, Step, UnexpectedResult, Workflow};

/// A workflow and what it starts with. The guest holds the state machine; the host performs its
/// effects, and keeps the journal, the budget and every key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workflow", rename_all = "snake_case", deny_unknown_fields)]
pub enum GuestWorkflow {
    /// One question. Only without a schema: its check would have to travel along.
    Ask {
        /// The question.
        request: Box<ModelRequest>,
    },
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
        match self {
            Self::Ask { request } if request.schema.is_some() => Err(UnknownWorkflow),
            Self::Ask { request } => {
                let ask = Ask::new(*request, Box::new(|_: &serde_json::Value| Vec::new()))
                    .map_err(|_| UnknownWorkflow)?;
                Ok(GuestMachine::Ask(Box::new(ask)))
            }
            Self::Debate { input } => {
                let debate = Debate::new(*input).map_err(|_| UnknownWorkflow)?;
                Ok(GuestMachine::Debate(Box::new(debate)))
            }
        }
    }
}

/// A workflow inside a guest.
#[derive(Debug)]
pub enum GuestMachine {
    /// One question.
    Ask(Box<Ask>),
    /// A debate about one move.
    Debate(Box<Debate>),
}

impl GuestMachine {
    /// The folder of the workspace in which [its files](Self::files) are.
    pub const LOG_FOLDER: &str = "logs";

    /// What it has to write down, by path below the workspace: for a debate its conversations,
    /// `logs/i1.json` and on. The host can work out the same bytes, and compares.
    pub fn files(&self) -> BTreeMap<GuestPath, String> {
        match self {
            Self::Ask(_) => BTreeMap::new(),
            Self::Debate(debate) => {
                let file = |(name, log): (&String, &Vec<_>)| {
                    let path = format!("{}/{name}.json", Self::LOG_FOLDER).parse().ok()?;
                    Some((path, log_json(log)))
                };
                debate.logs().iter().filter_map(file).collect()
            }
        }
    }
}

impl Workflow for GuestMachine {
    fn start(&mut self) -> Step {
        match self {
            Self::Ask(ask) => ask.start(),
            Self::Debate(debate) => debate.start(),
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        match self {
            Self::Ask(ask) => ask.resume(id, result),
            Self::Debate(debate) => debate.resume(id, result),
        }
    }
}
