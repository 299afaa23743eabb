//! `GET /api/runs`: one page of runs with everything that a list shows, in one request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use moothall_core::consult::{ConsultResult, RankedMove};
use moothall_core::verdict::{PanelCheck, TierList};
use moothall_core::view::{ConsultView, MoveView, RunStatus, RunView, StageProgress, move_number};
use moothall_core::{Conclusion, PauseReason, RunId};
use moothall_store::{RunOrder, RunQuery, RunRow, RunState, TeamFilter};
use serde::Deserialize;

use crate::dto::{BestMove, ConsultSummary, MoveProgress, PanelSummary, RunList, RunSummary};
use crate::extract::QueryParams;
use crate::runs::{about, catch_up, parent};
use crate::times::rfc3339;
use crate::{ApiProblem, AppState, CallerIdentity};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;

/// Longer search texts are refused.
const MAX_TEXT_CHARS: usize = 200;

/// Number of unfinished runs whose view is kept. A list that is loaded again applies only the new
/// events.
const MAX_CACHED_VIEWS: usize = 64;

#[derive(Debug, Deserialize)]
pub(crate) struct RunListQuery {
    state: Option<RunState>,
    workflow: Option<String>,
    q: Option<String>,
    sort: Option<RunOrder>,
    offset: Option<u32>,
    limit: Option<u32>,
}

pub(crate) async fn list(
    State(app): State<AppState>,
    caller: CallerIdentity,
    QueryParams(query): QueryParams<RunListQuery>,
) -> Result<Json<RunList>, ApiProblem> {
    let text = query.q.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if text.as_ref().is_some_and(|text| text.chars().count() > MAX_TEXT_CHARS) {
        let message = format!("`q` is too long (limit: {MAX_TEXT_CHARS} characters)");
        return Err(ApiProblem::bad_request(message));
    }
    let page = app.store.run_page(RunQuery {
        teams: TeamFilter::Only(caller.owner()?.team),
        state: query.state,
        workflow: query.workflow,
        text,
        order: query.sort.unwrap_or_default(),
        offset: query.offset.unwrap_or_default(),
        limit: query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
    });
    let page = page.await?;
    let open = page.rows.iter().filter(|row| !row.state.is_terminal());
    let driven = app.run_service.driven(open.cloned().collect()).await?;
    let mut runs = Vec::with_capacity(page.rows.len());
    for row in &page.rows {
        runs.push(summary(&app, row, driven.contains(&row.run_id)).await?);
    }
    Ok(Json(RunList { runs, total: page.total }))
}

async fn summary(app: &AppState, row: &RunRow, driven: bool) -> Result<RunSummary, ApiProblem> {
    let (consult, status) = match result(row) {
        Some(result) => (Some(of_result(row, result)), None),
        // A program's result is its verdict; anything else is only in the events.
        None if row.state == RunState::Finished => (None, None),
        None => {
            let view = app.list_views.read(app, row, driven).await?;
            (view.consult.as_ref().map(|consult| of_view(&view, consult)), Some(view.status))
        }
    };
    let (pause, detail) = match status {
        Some(RunStatus::Paused { reason, detail }) => (Some(reason), Some(detail)),
        Some(RunStatus::Failed { detail, .. }) => (None, Some(detail)),
        _ => (None, None),
    };
    Ok(RunSummary {
        run_id: row.run_id.clone(),
        workflow: row.spec.workflow().to_owned(),
        title: row.title.clone(),
        model: row.model.clone(),
        state: row.state,
        driven,
        created_at: rfc3339(row.created_at_ms),
        updated_at: rfc3339(row.updated_at_ms),
        events: row.events,
        verdict: row.outcome.as_ref().map(|outcome| outcome.verdict),
        cost_micro_usd: row.spent.map(|spent| spent.usd),
        tokens: row.spent.map(|spent| spent.tokens),
        parent: parent(row).map(|parent| parent.run.clone()),
        needs_review: pause == Some(PauseReason::Question),
        detail,
        consult,
    })
}

fn result(row: &RunRow) -> Option<&ConsultResult> {
    match &row.outcome.as_ref()?.conclusion {
        Conclusion::Ranked(result) => Some(result),
        _ => None,
    }
}

fn of_result(row: &RunRow, result: &ConsultResult) -> ConsultSummary {
    let input = row.spec.consult().map(|spec| &spec.input);
    let moves = result.recommended.iter().map(|one| (one, true));
    let moves = moves.chain(result.other.iter().map(|one| (one, false)));
    let progress = |(one, recommended): (&RankedMove, bool)| MoveProgress {
        move_id: one.move_id.clone(),
        score: one.debated.as_ref().and_then(|debated| debated.score()),
        in_debate: false,
        recommended,
    };
    let mut moves: Vec<MoveProgress> = moves.map(progress).collect();
    moves.sort_by_key(|one| move_number(&one.move_id));
    let best = result.recommended.first().and_then(|one| {
        let debated = one.debated.as_ref()?;
        Some(BestMove {
            move_id: one.move_id.clone(),
            title: one.title.clone(),
            score: debated.score()?,
            out_of: debated.top_score,
            spread: debated.spread,
        })
    });
    ConsultSummary {
        ticker: input.map(|input| input.gather.ticker.clone()).unwrap_or_default(),
        company: Some(result.company.clone()).filter(|name| !name.is_empty()),
        rounds: input.map_or(0, |input| input.committee.rounds),
        stage: None,
        expected_moves: input.map_or(0, |input| input.proposed_moves()),
        moves,
        best,
        do_nothing: result.do_nothing.as_ref().map(|scores| scores.total_score),
        panel: result.verdict.as_ref().map(|verdict| panel_summary(&verdict.tiers)),
    }
}

pub(crate) fn panel_summary(tiers: &TierList) -> PanelSummary {
    PanelSummary {
        headline: tiers.headline.text(),
        warning: tiers.controls.warning(),
        failed: tiers.controls.check == PanelCheck::Failed,
    }
}

fn of_view(view: &RunView, consult: &ConsultView) -> ConsultSummary {
    let runs = view.status == RunStatus::Running;
    let progress = |one: &MoveView| MoveProgress {
        move_id: one.move_id.clone(),
        score: one.scored.as_ref().and_then(|scored| scored.score),
        in_debate: runs && one.scored.is_none() && !one.vetoed && !one.rounds.is_empty(),
        recommended: consult.recommended.contains(&one.move_id),
    };
    let stage = consult.layers.iter().rfind(|stage| stage.state != StageProgress::Waiting);
    ConsultSummary {
        ticker: consult.ticker.clone(),
        company: consult.gathered.as_ref().map(|gathered| gathered.company.clone()),
        rounds: consult.rounds,
        stage: stage.map(|stage| stage.layer),
        expected_moves: consult.expected_moves,
        moves: consult.moves.iter().map(progress).collect(),
        best: None,
        do_nothing: None,
        panel: consult.verdict.as_ref().map(|verdict| panel_summary(&verdict.tiers)),
    }
}

/// Views of unfinished, failed and cancelled runs for lists, least recently used first.
#[derive(Default)]
pub(crate) struct ListViewCache(Mutex<VecDeque<RunView>>);

impl ListViewCache {
    async fn read(
        &self,
        app: &AppState,
        row: &RunRow,
        driven: bool,
    ) -> Result<RunView, ApiProblem> {
        let mut view = match self.take(&row.run_id) {
            Some(view) => view,
            None => RunView::empty(about(app, row, driven).await?),
        };
        catch_up(app, &mut view).await?;
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have read the same run in the meantime.
        views.retain(|known| known.about.run_id != row.run_id);
        views.push_back(view.clone());
        while views.len() > MAX_CACHED_VIEWS {
            views.pop_front();
        }
        Ok(view)
    }

    fn take(&self, run_id: &RunId) -> Option<RunView> {
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = views.iter().position(|view| view.about.run_id == *run_id)?;
        views.remove(at)
    }
}
