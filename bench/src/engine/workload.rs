//! The workload of both sides: the same debates, answered from the same table.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use moothall_core::child::ChildRequest;
use moothall_core::consult::Consult;
use moothall_core::debate::DebateInput;
use moothall_core::{Effect, EffectId, Workflow as _};

use crate::consult::{Script, evidence, input};

/// Debates per run.
pub(crate) const MOVES: usize = 15;

/// Latency of each model call.
pub(crate) const LATENCY: Duration = Duration::from_millis(5);

/// A debate and the effect that starts it.
pub(crate) type Asked = (EffectId, Box<DebateInput>);

/// The debates of one consultation and their model.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) debates: Arc<[Asked]>,
    pub(crate) model: Script,
}

impl Trial {
    pub(crate) fn new() -> Result<Self> {
        let model = Script::new(evidence()?).with_latency(LATENCY);
        let mut consult = Consult::new(input()?)?;
        let mut open = VecDeque::from(consult.start().perform);
        let mut debates: Vec<Asked> = Vec::new();
        while let Some((id, effect)) = open.pop_front() {
            match effect {
                Effect::StartChild(ChildRequest::Debate(input)) => debates.push((id, input)),
                effect => {
                    let answer = model.answer(&id, &effect);
                    open.extend(consult.resume(&id, answer)?.perform);
                }
            }
        }
        debates.truncate(MOVES);
        debates.get(MOVES - 1).context("a consultation has too few debates")?;
        Ok(Self { debates: debates.into(), model })
    }
}
