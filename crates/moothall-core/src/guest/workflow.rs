//! Workflows that can run inside a guest.

use serde::{Deserialize, Serialize};

use crate::Workflow;
use crate::ask::Ask;
use crate::model::ModelRequest;

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
}

/// A workflow that cannot run inside a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this workflow cannot run inside a guest")]
pub struct UnknownWorkflow;

impl GuestWorkflow {
    /// The machine, ready to start.
    pub fn build(self) -> Result<Box<dyn Workflow + Send>, UnknownWorkflow> {
        match self {
            Self::Ask { request } if request.schema.is_some() => Err(UnknownWorkflow),
            Self::Ask { request } => {
                let ask = Ask::new(*request, Box::new(|_: &serde_json::Value| Vec::new()))
                    .map_err(|_| UnknownWorkflow)?;
                Ok(Box::new(ask))
            }
        }
    }
}
