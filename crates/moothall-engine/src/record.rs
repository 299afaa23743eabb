//! A complete run, read from the store.

use std::collections::BTreeMap;

use moothall_core::consult::{Consult, ConsultInput, MoveApproval, MoveReview, settle};
use moothall_core::model::{ModelName, ModelReply, TokenUsage};
use moothall_core::receipt::{
    EffectRecord, EffectTiming, FORMAT, Receipt, ReceiptManifest, ReceiptNotes,
};
use moothall_core::view::CostBreakdown;
use moothall_core::{
    EffectId, EffectResult, MicroUsd, PauseReason, RunEventBody, RunId, SequencedEvent, Sha256Hex,
};
use moothall_store::{JournalEntry, RunRow, Store, StoreError, StoredEvent};

/// Events read per page.
const PAGE: u32 = 1000;

/// Everything the store has about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// State and metadata.
    pub row: RunRow,
    /// Results by effect.
    pub journal: BTreeMap<EffectId, JournalEntry>,
    /// Events in order.
    pub events: Vec<StoredEvent>,
    /// People's approvals of the moves of a consultation.
    pub approvals: Vec<MoveApproval>,
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

    /// The receipt, if the run has an outcome. It is derived only from stored data, so it can be
    /// created at any time.
    pub fn receipt(&self) -> Option<Receipt> {
        let input = self.consult_input();
        let outcome = settle(self.row.outcome.clone()?, &self.approvals);
        let conclusion = input.is_some().then(|| Box::new(outcome.conclusion));
        let timing = self.journal.iter().map(|(id, entry)| (id.clone(), entry.timing));
        let model: Result<ModelName, _> = self.row.model.parse();
        let models = input.map(ConsultInput::receipt_models).unwrap_or_default();
        let is_demo = model.is_ok_and(|model| model.is_demo());
        // A fork may inherit answers of the demo model.
        let inherits_demo = input.is_some_and(|input| {
            input.parent.is_some() && input.distinct_models().iter().any(|model| model.is_demo())
        });
        Some(Receipt {
            manifest: ReceiptManifest {
                receipt: FORMAT,
                workflow: self.row.spec.workflow().to_owned(),
                build: self.row.build.clone(),
                model: self.row.model.clone(),
                demonstration: is_demo || inherits_demo || models.values().any(ModelName::is_demo),
                models,
                texts: input.map(ConsultInput::receipt_texts).unwrap_or_default(),
            },
            effects: self.effects(),
            input: input.cloned().map(Box::new),
            approvals: self.approvals.clone(),
            conclusion,
            findings: outcome.findings,
            notes: ReceiptNotes {
                run_id: self.row.run_id.clone(),
                started_at_ms: self.row.created_at_ms,
                timing: timing.collect(),
            },
        })
    }

    /// The journaled results with the hashes of their requests.
    pub fn effects(&self) -> BTreeMap<EffectId, EffectRecord> {
        let effect = |(id, entry): (&EffectId, &JournalEntry)| {
            let (request_sha256, result) = (entry.request_sha256, entry.result.clone());
            (id.clone(), EffectRecord { request_sha256, result })
        };
        self.journal.iter().map(effect).collect()
    }

    /// The journaled result of an effect.
    pub(crate) fn result(&self, id: &EffectId) -> Option<&EffectResult> {
        self.journal.get(id).map(|entry| &entry.result)
    }

    /// The journal without the results that a fork inherited from its parent.
    pub fn own_journal(&self) -> impl Iterator<Item = (&EffectId, &JournalEntry)> {
        let input = self.consult_input();
        self.journal.iter().filter(move |(id, _)| !input.is_some_and(|one| one.is_inherited(id)))
    }

    /// The input of the workflow, if the run is a consultation.
    pub fn consult_input(&self) -> Option<&ConsultInput> {
        self.row.spec.consult().map(|spec| &spec.input)
    }

    /// Whether the run is paused for a review of the moves that has not happened yet.
    pub fn waits_for_person(&self) -> bool {
        let asked = |stored: &StoredEvent| match &stored.event.body {
            RunEventBody::RunPaused { reason, .. } => *reason == PauseReason::Question,
            _ => false,
        };
        !self.row.state.is_terminal() && !self.was_reviewed() && self.events.iter().any(asked)
    }

    /// Whether a person has reviewed the moves, with or without changes.
    pub fn was_reviewed(&self) -> bool {
        self.journal.keys().any(|id| id.as_str() == Consult::REVIEW)
    }

    /// A copy of the record as if a person had given this review. For previews only; never stored.
    #[must_use]
    pub fn reviewed(&self, review: MoveReview) -> Self {
        let mut record = self.clone();
        if let Ok(id) = Consult::REVIEW.parse() {
            let result = EffectResult::PersonSaid(Box::new(review));
            let timing = EffectTiming { latency_ms: 0, tries: 0 };
            let request_sha256 = Sha256Hex::of(&[]);
            record.journal.insert(id, JournalEntry { request_sha256, result, timing });
        }
        record
    }

    /// The summed timing of its own effects.
    pub fn timing(&self) -> EffectTiming {
        let sum = |sum: EffectTiming, (_, entry): (&EffectId, &JournalEntry)| EffectTiming {
            latency_ms: sum.latency_ms.saturating_add(entry.timing.latency_ms),
            tries: sum.tries.saturating_add(entry.timing.tries),
        };
        self.own_journal().fold(EffectTiming { latency_ms: 0, tries: 0 }, sum)
    }

    /// Token usage of all model replies.
    pub fn usage(&self) -> TokenUsage {
        self.replies().fold(TokenUsage::default(), |sum, reply| sum.plus(&reply.usage))
    }

    /// Total cost of all model replies; `None` if the cost of any of them is unknown. Failed
    /// attempts are not included; they count in what the run has spent.
    pub fn cost(&self) -> Option<MicroUsd> {
        self.replies().map(|reply| reply.cost_micro_usd).sum()
    }

    /// The same cost, by role, stage and model.
    pub fn costs(&self) -> CostBreakdown {
        CostBreakdown::of_events(self.events.iter().map(|stored| &stored.event.body))
    }

    fn replies(&self) -> impl Iterator<Item = &ModelReply> {
        self.own_journal().filter_map(|(_, entry)| match &entry.result {
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

    /// The events in their export format.
    pub fn sequenced(&self) -> impl Iterator<Item = SequencedEvent> {
        self.events.iter().map(|event| sequenced(&self.row.run_id, event))
    }
}

/// An event in its export format.
pub fn sequenced(run_id: &RunId, stored: &StoredEvent) -> SequencedEvent {
    SequencedEvent { run_id: run_id.clone(), seq: stored.seq, event: stored.event.clone() }
}
