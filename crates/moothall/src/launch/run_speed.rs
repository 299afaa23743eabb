//! How fast earlier consultations with the same model were.

use moothall_core::RunId;
use moothall_core::consult::{Consult, ConsultInput};
use moothall_store::{RunOrder, RunQuery, RunRow, RunState, TeamFilter};

use crate::config::LoadedConfig;
use crate::display::short_number;
use crate::run_store::{self, RunStore};

/// Only the newest runs count: servers and their load change.
const NEWEST_RUNS: u32 = 5;

/// The speed of a finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunSpeed {
    run_id: RunId,
    tokens_per_minute: u64,
}

impl RunSpeed {
    /// The speed of the fastest of the newest runs with the model of this input: slower ones may
    /// have been paused. `None` without such a run, with several models, or if the runs cannot be
    /// read.
    pub(crate) async fn of_earlier_runs(
        loaded: &LoadedConfig,
        input: &ConsultInput,
    ) -> Option<Self> {
        let models = input.called_models();
        let [model] = models.as_slice() else { return None };
        if model.is_demo() {
            return None;
        }
        let local = RunStore::open_existing(loaded).await.ok()??;
        let model = model.to_string();
        let query = RunQuery {
            teams: TeamFilter::All,
            state: Some(RunState::Finished),
            workflow: Some(Consult::NAME.to_owned()),
            text: Some(model.clone()),
            order: RunOrder::Newest,
            offset: 0,
            limit: NEWEST_RUNS,
        };
        let page = local.store.run_page(query).await;
        local.close().await;
        let speeds = page.ok()?.rows.into_iter().filter(|row| row.model == model);
        speeds.filter_map(Self::of).max_by_key(|speed| speed.tokens_per_minute)
    }

    fn of(row: RunRow) -> Option<Self> {
        let ms = row.updated_at_ms.saturating_sub(row.created_at_ms);
        let per_minute = row.spent?.tokens.saturating_mul(60_000).checked_div(ms)?;
        (per_minute > 0).then_some(Self { run_id: row.run_id, tokens_per_minute: per_minute })
    }

    /// Minutes for a number of tokens, at least one.
    pub(crate) fn minutes(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.tokens_per_minute).max(1)
    }

    /// `12 to 40 min at the speed of run 01a1edaa-6b98 (4.2 k tokens per minute)`.
    pub(crate) fn line(&self, low_tokens: u64, high_tokens: u64) -> String {
        let (low, high) = (self.minutes(low_tokens), self.minutes(high_tokens));
        let minutes = if low == high { low.to_string() } else { format!("{low} to {high}") };
        format!(
            "about {minutes} min at the speed of run {} ({} tokens per minute)",
            run_store::short_id(&self.run_id),
            short_number(self.tokens_per_minute)
        )
    }
}
