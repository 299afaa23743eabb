//! `/api/runs/{run}/calls`: the model calls of a run, and single calls with prompt and answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use moothall_core::access::AccessScope;
use moothall_core::view::{CallDetail, CallFilter, CallPage, CallResult, RunCalls};
use moothall_core::{EffectId, RunId};
use moothall_engine::{RunRecord, update_calls};
use moothall_store::RunRow;
use serde::Deserialize;
use tokio::sync::Mutex as AsyncMutex;

use crate::extract::{PathParams, QueryParams};
use crate::{ApiProblem, AppState, CallerIdentity};

const DEFAULT_LIMIT: usize = 1000;
const MAX_LIMIT: usize = 5000;

/// Number of cached logs. A log of 20,000 calls takes about 10 MB.
const MAX_CACHED_LOGS: usize = 8;

/// How long a request that reads the whole journal waits for others of its team.
const REPLAY_WAIT: Duration = Duration::from_secs(50);

/// Filters and cursor. A misspelled filter is an error, because it would select too many calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallLogQuery {
    role: Option<String>,
    stage: Option<String>,
    #[serde(rename = "move")]
    move_id: Option<String>,
    round: Option<u32>,
    model: Option<String>,
    result: Option<CallResult>,
    retries: Option<bool>,
    text: Option<String>,
    after: Option<u64>,
    limit: Option<usize>,
}

impl CallLogQuery {
    fn filter(&self) -> CallFilter {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        CallFilter {
            role: given(&self.role),
            stage: given(&self.stage),
            move_id: given(&self.move_id),
            round: self.round,
            model: given(&self.model),
            result: self.result,
            only_retries: self.retries.unwrap_or(false),
            text: given(&self.text),
        }
    }
}

/// Returns a page of the log, with sums of all calls that match the filters.
pub(crate) async fn list(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    QueryParams(query): QueryParams<CallLogQuery>,
) -> Result<Json<CallPage>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    let filter = query.filter();
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let after = query.after.unwrap_or(0);
    let log = app.call_logs.log_of(&row.run_id);
    let mut log = log.lock_owned().await;
    if log.as_of_seq > row.events {
        // Another run had this id before.
        *log = RunCalls::default();
    }
    update_calls(&*app.store, &row.run_id, &mut log).await?;
    if filter.text.is_none() {
        let matching = log.matching(&filter, &|_| None);
        return Ok(Json(log.page(&matching, after, limit)));
    }
    // The answers are read only to search them: they are much larger than the log.
    let record = read_record(&app, &row).await?;
    let search = move || {
        let matching = log.matching(&filter, &|id| record.answer(id));
        log.page(&matching, after, limit)
    };
    let page = tokio::task::spawn_blocking(search).await;
    page.map(Json).map_err(|error| ApiProblem::internal(&error))
}

/// Returns one call with its prompt and answer.
pub(crate) async fn detail(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams((run, call)): PathParams<(String, String)>,
) -> Result<Json<CallDetail>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    let none = || {
        ApiProblem::not_found("the run has no such finished call")
            .with_hint("list the calls with `GET /api/runs/{run}/calls`; encode `/` as `%2F`")
    };
    let id: EffectId = call.parse().map_err(|_| none())?;
    let record = read_record(&app, &row).await?;
    // Rebuilding a prompt replays a part of the run.
    let found = tokio::task::spawn_blocking(move || record.call_detail(&id)).await;
    found.map_err(|error| ApiProblem::internal(&error))?.map(Json).ok_or_else(none)
}

async fn read_record(app: &AppState, row: &RunRow) -> Result<RunRecord, ApiProblem> {
    let _permit = app.replays.acquire(&row.owner.team, REPLAY_WAIT).await?;
    Ok(RunRecord::read(&*app.store, &row.run_id).await?)
}

/// Recently read logs. A request reads only the events that are new since the last one.
#[derive(Default)]
pub(crate) struct CallLogCache {
    /// Least recently used first.
    logs: Mutex<VecDeque<(RunId, Arc<AsyncMutex<RunCalls>>)>>,
}

impl CallLogCache {
    fn log_of(&self, run_id: &RunId) -> Arc<AsyncMutex<RunCalls>> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = logs.iter().position(|(id, _)| id == run_id);
        let entry = known.and_then(|at| logs.remove(at));
        let (id, log) = entry.unwrap_or_else(|| (run_id.clone(), Arc::default()));
        logs.push_back((id, Arc::clone(&log)));
        while logs.len() > MAX_CACHED_LOGS {
            logs.pop_front();
        }
        log
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
