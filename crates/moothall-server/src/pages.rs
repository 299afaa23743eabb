//! `GET /api/runs/{run}/events.json`: the same events for whoever cannot hold a stream.

use axum::Json;
use axum::extract::State;
use moothall_core::RunId;
use moothall_core::access::Scope;
use moothall_store::StoredEvent;
use serde::Deserialize;
use std::time::Duration;

use crate::asked::{Asked, Named};
use crate::feed::envelope;
use crate::stream::{beyond_head, cursor};
use crate::wire::EventPage;
use crate::{App, Problem, Who};

/// The most events of one answer.
const MOST: u32 = 1000;
const USUAL: u32 = 500;

#[derive(Debug, Deserialize)]
pub(crate) struct PageQuery {
    after: Option<String>,
    limit: Option<u32>,
    /// Seconds to wait where there is nothing new.
    wait: Option<u64>,
}

pub(crate) async fn events_json(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
    Asked(query): Asked<PageQuery>,
) -> Result<Json<EventPage>, Problem> {
    let row = app.find(&who, Scope::Read, &run).await?;
    let after = cursor(query.after.as_deref())?;
    if after > row.events {
        return Err(beyond_head(after, &row));
    }
    let wait = Duration::from_secs(query.wait.unwrap_or(0)).min(app.options.longest_wait);
    if after == row.events && !row.state.is_terminal() && !wait.is_zero() {
        until_further(&app, &row.run_id, after, wait).await?;
    }
    let limit = query.limit.unwrap_or(USUAL).clamp(1, MOST);
    // Before the events: what is written between the two questions is then read, not missed.
    let row = app.store.run(&row.run_id).await?.ok_or_else(|| Problem::no_such_run(&run))?;
    let stored = app.store.events(&row.run_id, after, limit).await?;
    let last = stored.last().map_or(after, |stored: &StoredEvent| stored.seq);
    Ok(Json(EventPage {
        events: stored.iter().map(|stored| envelope(&row.run_id, stored)).collect(),
        head_seq: row.events.max(last),
        terminal: row.state.is_terminal(),
    }))
}

/// Waits until the log goes beyond a cursor, or for as long as was asked.
async fn until_further(
    app: &App,
    run_id: &RunId,
    after: u64,
    wait: Duration,
) -> Result<(), Problem> {
    let feed = app.feed.follow(run_id).await?;
    let mut changes = feed.changes();
    let further = changes.wait_for(|head| head.seq > after || head.terminal || head.gone);
    tokio::select! {
        _ = further => {}
        () = tokio::time::sleep(wait) => {}
        () = app.closing.cancelled() => {}
    }
    Ok(())
}
