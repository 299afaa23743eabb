//! What a run leaves behind: its events in order, its effects, its receipt.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use moothall_core::model::{ModelName, ModelReply, Usage};
use moothall_core::receipt::{EffectRecord, FORMAT, Manifest, Notes, Receipt, Timing};
use moothall_core::{EffectId, EffectResult, Finding, MicroUsd, RunEvent, RunId, SequencedEvent};

use crate::error::CliError;

#[derive(Debug)]
pub(super) struct RunRecord {
    pub(super) run_id: RunId,
    started_at_ms: u64,
    events: Vec<SequencedEvent>,
    effects: BTreeMap<EffectId, EffectRecord>,
    timing: BTreeMap<EffectId, Timing>,
}

impl RunRecord {
    pub(super) fn start() -> Result<Self, CliError> {
        let run_id = uuid::Uuid::now_v7()
            .to_string()
            .parse()
            .map_err(|error: moothall_core::InvalidId| CliError::failed(error.to_string()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            run_id,
            started_at_ms,
            events: Vec::new(),
            effects: BTreeMap::new(),
            timing: BTreeMap::new(),
        })
    }

    pub(super) fn publish(&mut self, events: impl IntoIterator<Item = RunEvent>) {
        for event in events {
            let seq = self.events.len() as u64 + 1;
            self.events.push(SequencedEvent { run_id: self.run_id.clone(), seq, event });
        }
    }

    pub(super) fn effect(&mut self, id: EffectId, effect: EffectRecord, timing: Timing) {
        self.timing.insert(id.clone(), timing);
        self.effects.insert(id, effect);
    }

    /// The time that all effects took.
    pub(super) fn timing(&self) -> Timing {
        let sum = |sum: Timing, one: &Timing| Timing {
            latency_ms: sum.latency_ms + one.latency_ms,
            tries: sum.tries + one.tries,
        };
        self.timing.values().fold(Timing { latency_ms: 0, tries: 0 }, sum)
    }

    /// The tokens of all answers.
    pub(super) fn usage(&self) -> Usage {
        self.replies().fold(Usage::default(), |sum, reply| sum.plus(&reply.usage))
    }

    /// What all answers cost together; unknown where one of them is.
    pub(super) fn cost(&self) -> Option<MicroUsd> {
        self.replies().map(|reply| reply.cost_micro_usd).sum()
    }

    fn replies(&self) -> impl Iterator<Item = &ModelReply> {
        self.effects.values().filter_map(|effect| match &effect.result {
            EffectResult::ModelReplied(reply) => Some(reply),
            EffectResult::ModelFailed(_) => None,
        })
    }

    pub(super) fn events_ndjson(&self) -> Result<String, serde_json::Error> {
        self.events.iter().map(|event| Ok(serde_json::to_string(event)? + "\n")).collect()
    }

    pub(super) fn receipt(
        &self,
        workflow: &str,
        model: &ModelName,
        findings: &[Finding],
    ) -> Receipt {
        Receipt {
            manifest: Manifest {
                receipt: FORMAT,
                workflow: workflow.to_owned(),
                build: env!("CARGO_PKG_VERSION").to_owned(),
                model: model.to_string(),
                demonstration: model.is_demo(),
            },
            effects: self.effects.clone(),
            findings: findings.to_vec(),
            notes: Notes {
                run_id: self.run_id.clone(),
                started_at_ms: self.started_at_ms,
                timing: self.timing.clone(),
            },
        }
    }
}
