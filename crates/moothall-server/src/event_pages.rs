//! `GET /api/runs/{run}/events.json`: events in pages, for clients that cannot use a stream.

use axum::Json;
use axum::extract::State;
use moothall_core::RunId;
use moothall_core::access::AccessScope;
use moothall_store::StoredEvent;
use serde::Deserialize;
use std::time::Duration;

use crate::dto::EventPage;
use crate::event_stream::{beyond_head, cursor};
use crate::extract::{PathParams, QueryParams};
use crate::feed::envelope;
use crate::{ApiProblem, AppState, CallerIdentity};

/// Maximum events per response.
const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 500;

#[derive(Debug, Deserialize)]
pub(crate) struct EventPageQuery {
    after: Option<String>,
    limit: Option<u32>,
    /// Seconds to wait if there is no new event.
    wait: Option<u64>,
}

pub(crate) async fn events_json(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    QueryParams(query): QueryParams<EventPageQuery>,
) -> Result<Json<EventPage>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    let after = cursor(query.after.as_deref())?;
    if after > row.events {
        return Err(beyond_head(after, &row));
    }
    let wait = Duration::from_secs(query.wait.unwrap_or(0)).min(app.options.longest_wait);
    if after == row.events && !row.state.is_terminal() && !wait.is_zero() {
        wait_for_events(&app, &row.run_id, after, wait).await?;
    }
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    // Read the row before the events, so that an event committed in between is included.
    let row = app.store.run(&row.run_id).await?.ok_or_else(|| ApiProblem::no_such_run(&run))?;
    let stored = app.store.events(&row.run_id, after, limit).await?;
    let last = stored.last().map_or(after, |stored: &StoredEvent| stored.seq);
    Ok(Json(EventPage {
        events: stored.iter().map(|stored| envelope(&row.run_id, stored)).collect(),
        head_seq: row.events.max(last),
        terminal: row.state.is_terminal(),
    }))
}

/// Waits until the log grows past the cursor, or until the timeout.
async fn wait_for_events(
    app: &AppState,
    run_id: &RunId,
    after: u64,
    wait: Duration,
) -> Result<(), ApiProblem> {
    let feed = app.feed.follow(run_id).await?;
    let mut changes = feed.changes();
    let changed = changes.wait_for(|head| head.seq > after || head.terminal || head.deleted);
    tokio::select! {
        _ = changed => {}
        () = tokio::time::sleep(wait) => {}
        () = app.closing.cancelled() => {}
    }
    Ok(())
}
