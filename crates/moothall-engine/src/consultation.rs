//! A stored consultation with everything derived from its journal.

use moothall_core::EffectResult;
use moothall_core::consult::{ConsultInput, Move};
use moothall_core::evidence::CalendarDay;
use moothall_core::report::{self, ConsultReport, DeriveFault, RunFacts};
use moothall_core::view::{FallbackUse, is_extra_call};

use crate::record::RunRecord;

/// A consultation as shown to readers.
#[derive(Debug, Clone)]
pub struct Consultation {
    /// The current state of the consultation.
    pub view: ConsultReport,
    /// Calls, usage and cost of the run.
    pub facts: RunFacts,
}

impl Consultation {
    /// Derives the view from the journal as far as it goes. Returns `None` if the run is not a
    /// consultation.
    ///
    /// Fails if the journaled results do not fit the workflow, for example because another version
    /// wrote them.
    pub fn of(record: &RunRecord) -> Option<Result<Self, DeriveFault>> {
        let input = record.consult_input()?;
        Some(report(input, record).map(|view| Self { view, facts: facts(input, record) }))
    }

    /// The moves so far. Much cheaper than [`Self::of`], which replays all debates as well.
    pub fn proposed_moves(record: &RunRecord) -> Option<Result<Vec<Move>, DeriveFault>> {
        let input = record.consult_input()?;
        Some(report::proposed_moves(input, |id| record.result(id)))
    }
}

fn report(input: &ConsultInput, record: &RunRecord) -> Result<ConsultReport, DeriveFault> {
    let view = ConsultReport::of(input, |id| record.result(id), &record.approvals)?;
    // Otherwise a finished run would be shown as an unfinished one.
    if record.row.outcome.is_some() && view.outcome.is_none() {
        return Err(DeriveFault::NoOutcome);
    }
    Ok(view)
}

fn facts(input: &ConsultInput, record: &RunRecord) -> RunFacts {
    let replied = record.own_journal().filter(|(_, entry)| {
        matches!(entry.result, EffectResult::ModelReplied(_) | EffectResult::ModelFailed(_))
    });
    let (extra, calls): (Vec<_>, Vec<_>) = replied.partition(|(id, _)| is_extra_call(id));
    let seconds = i64::try_from(record.row.created_at_ms / 1000).unwrap_or(i64::MAX);
    RunFacts {
        run_id: record.row.run_id.to_string(),
        build: record.row.build.clone(),
        started_on: CalendarDay::from_unix_seconds(seconds).to_string(),
        calls: (calls.len() + extra.len()) as u64,
        extra_calls: extra.len() as u64,
        usage: record.usage(),
        cost: record.cost(),
        costs: record.costs(),
        fallbacks: FallbackUse::of_events(record.events.iter().map(|stored| &stored.event.body)),
        demonstration: input.distinct_models().iter().any(|model| model.is_demo()),
    }
}
