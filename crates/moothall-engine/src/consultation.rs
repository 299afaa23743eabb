//! A consultation that is kept, with everything that follows from its answers.

use moothall_core::consult::ConsultInput;
use moothall_core::evidence::Day;
use moothall_core::report::{ConsultView, DeriveFault, RunFacts};
use moothall_core::view::asks_again;
use moothall_core::{EffectId, EffectResult};

use crate::record::RunRecord;

/// What readers of a consultation see.
#[derive(Debug, Clone)]
pub struct Consultation {
    /// Where it stands.
    pub view: ConsultView,
    /// What it took.
    pub facts: RunFacts,
}

impl Consultation {
    /// Reads a run as far as its answers go; nothing where it is no consultation.
    ///
    /// Errors: where its answers do not make one, as with a run of another version.
    pub fn of(record: &RunRecord) -> Option<Result<Self, DeriveFault>> {
        let input = record.consult_input()?;
        let answer = |id: &EffectId| record.journal.get(id).map(|entry| &entry.result);
        let view = ConsultView::of(input, answer, &record.approvals);
        Some(view.map(|view| Self { view, facts: facts(input, record) }))
    }
}

fn facts(input: &ConsultInput, record: &RunRecord) -> RunFacts {
    let replied = record.journal.iter().filter(|(_, entry)| {
        matches!(entry.result, EffectResult::ModelReplied(_) | EffectResult::ModelFailed(_))
    });
    let (extra, calls): (Vec<_>, Vec<_>) = replied.partition(|(id, _)| asks_again(id));
    let seconds = i64::try_from(record.row.created_at_ms / 1000).unwrap_or(i64::MAX);
    RunFacts {
        run_id: record.row.run_id.to_string(),
        build: record.row.build.clone(),
        started_on: Day::from_unix_seconds(seconds).to_string(),
        calls: (calls.len() + extra.len()) as u64,
        extra_calls: extra.len() as u64,
        usage: record.usage(),
        cost: record.cost(),
        demonstration: input.models.distinct().iter().any(|model| model.is_demo()),
    }
}
