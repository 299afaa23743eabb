//! A run as the store holds it, read as a whole.

use std::collections::BTreeMap;

use moothall_core::consult::{Approval, Consult, ConsultInput, Review, settle};
use moothall_core::model::{ModelName, ModelReply, Usage};
use moothall_core::receipt::{EffectRecord, FORMAT, Manifest, Notes, Receipt, Timing};
use moothall_core::{
    EffectId, EffectResult, MicroUsd, PauseReason, RunEventBody, RunId, SequencedEvent, Sha256Hex,
};
use moothall_store::{JournalEntry, RunRow, Store, StoreError, StoredEvent};

/// How many events are read at once.
const PAGE: u32 = 1000;

/// Everything that is known about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Where it stands.
    pub row: RunRow,
    /// What was answered.
    pub journal: BTreeMap<EffectId, JournalEntry>,
    /// What happened, in order.
    pub events: Vec<StoredEvent>,
    /// What persons said about moves of a consultation.
    pub approvals: Vec<Approval>,
}

impl RunRecord {
    /// Reads a run.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    pub async fn read(store: &dyn Store, run_id: &RunId) -> Result<Self, StoreError> {
        let row = store.run(run_id).await?;
        let row = row.ok_or_else(|| StoreError::UnknownRun(run_id.clone()))?;
        let journal = store.journal(run_id).await?;
        let approvals = store.approvals(run_id).await?;
        let mut events = Vec::new();
        loop {
            let after = events.last().map_or(0, |event: &StoredEvent| event.seq);
            let more = store.events(run_id, after, PAGE).await?;
            if more.is_empty() {
                return Ok(Self { row, journal, events, approvals });
            }
            events.extend(more);
        }
    }

    /// The receipt, where the run came to an outcome. It follows from what is stored and from
    /// nothing else, so it can be written at any time.
    pub fn receipt(&self) -> Option<Receipt> {
        let input = self.consult_input();
        let outcome = settle(self.row.outcome.clone()?, &self.approvals);
        let conclusion = input.is_some().then(|| Box::new(outcome.conclusion));
        let effects = self.journal.iter().map(|(id, entry)| {
            let (request_sha256, result) = (entry.request_sha256, entry.result.clone());
            (id.clone(), EffectRecord { request_sha256, result })
        });
        let timing = self.journal.iter().map(|(id, entry)| (id.clone(), entry.timing));
        let model: Result<ModelName, _> = self.row.model.parse();
        Some(Receipt {
            manifest: Manifest {
                receipt: FORMAT,
                workflow: self.row.spec.workflow().to_owned(),
                build: self.row.build.clone(),
                model: self.row.model.clone(),
                demonstration: model.is_ok_and(|model| model.is_demo()),
            },
            effects: effects.collect(),
            input: input.cloned().map(Box::new),
            approvals: self.approvals.clone(),
            conclusion,
            findings: outcome.findings,
            notes: Notes {
                run_id: self.row.run_id.clone(),
                started_at_ms: self.row.created_at_ms,
                timing: timing.collect(),
            },
        })
    }

    /// The input of the workflow, where the run is a consultation.
    pub fn consult_input(&self) -> Option<&ConsultInput> {
        self.row.spec.consult().map(|spec| &spec.input)
    }

    /// Whether a person was asked about the moves and has not let the run go on since.
    pub fn waits_for_person(&self) -> bool {
        let asked = |stored: &StoredEvent| match &stored.event.body {
            RunEventBody::RunPaused { reason, .. } => *reason == PauseReason::Question,
            _ => false,
        };
        !self.row.state.is_terminal() && !self.was_reviewed() && self.events.iter().any(asked)
    }

    /// Whether a person has said something about the moves, or let them stand as they are.
    pub fn was_reviewed(&self) -> bool {
        self.journal.keys().any(|id| id.as_str() == Consult::REVIEW)
    }

    /// The record as it were if a person had said this. It is for showing, not for keeping.
    #[must_use]
    pub fn reviewed(&self, review: Review) -> Self {
        let mut record = self.clone();
        if let Ok(id) = Consult::REVIEW.parse() {
            let result = EffectResult::PersonSaid(Box::new(review));
            let timing = Timing { latency_ms: 0, tries: 0 };
            let request_sha256 = Sha256Hex::of(&[]);
            record.journal.insert(id, JournalEntry { request_sha256, result, timing });
        }
        record
    }

    /// The time that all effects took.
    pub fn timing(&self) -> Timing {
        let sum = |sum: Timing, entry: &JournalEntry| Timing {
            latency_ms: sum.latency_ms.saturating_add(entry.timing.latency_ms),
            tries: sum.tries.saturating_add(entry.timing.tries),
        };
        self.journal.values().fold(Timing { latency_ms: 0, tries: 0 }, sum)
    }

    /// The tokens of all answers.
    pub fn usage(&self) -> Usage {
        self.replies().fold(Usage::default(), |sum, reply| sum.plus(&reply.usage))
    }

    /// What all answers cost together; unknown where one of them is. Tries that failed are not in
    /// it, they are in what the run has spent.
    pub fn cost(&self) -> Option<MicroUsd> {
        self.replies().map(|reply| reply.cost_micro_usd).sum()
    }

    fn replies(&self) -> impl Iterator<Item = &ModelReply> {
        self.journal.values().filter_map(|entry| match &entry.result {
            EffectResult::ModelReplied(reply) => Some(reply),
            EffectResult::ModelFailed(_)
            | EffectResult::Executed(_)
            | EffectResult::NotExecuted(_)
            | EffectResult::NotPerformed
            | EffectResult::Gathered(_)
            | EffectResult::NotGathered(_)
            | EffectResult::ChildEnded(_)
            | EffectResult::PersonSaid(_)
            | EffectResult::Drafted(_) => None,
        })
    }

    /// The events as they stand in files.
    pub fn sequenced(&self) -> impl Iterator<Item = SequencedEvent> {
        self.events.iter().map(|event| sequenced(&self.row.run_id, event))
    }
}

/// An event as it stands in files.
pub fn sequenced(run_id: &RunId, stored: &StoredEvent) -> SequencedEvent {
    SequencedEvent { run_id: run_id.clone(), seq: stored.seq, event: stored.event.clone() }
}
