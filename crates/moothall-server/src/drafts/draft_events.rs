//! `GET /api/drafts/events`: stream of draft changes made by any process.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use moothall_workspace::{NotificationBatch, NotificationEntry};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ServedWorkspace, WorkspaceRegistry};
use crate::access::StreamPermit;
use crate::app::BUILD;
use crate::event_stream::{EVENT_STREAM, SCHEMA, bye};
use crate::extract::QueryParams;
use crate::times::rfc3339;
use crate::{ApiProblem, AppState, CallerIdentity};

/// How often journals are polled for records from other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// How often expired drafts are closed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Notifies streams that a journal may have grown.
#[derive(Debug)]
pub(crate) struct DraftNotifier(watch::Sender<u64>);

impl Default for DraftNotifier {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl DraftNotifier {
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// Stream position in each workspace, written as `id.seq` pairs separated by `-`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DraftStreamCursor(BTreeMap<String, u64>);

impl DraftStreamCursor {
    pub(crate) fn set(&mut self, workspace: &str, seq: u64) {
        self.0.insert(workspace.to_owned(), seq);
    }

    fn parse(text: &str) -> Option<Self> {
        let one = |part: &str| {
            let (id, seq) = part.split_once('.')?;
            Some((id.to_owned(), seq.parse().ok()?))
        };
        text.split('-').filter(|part| !part.is_empty()).map(one).collect::<Option<_>>().map(Self)
    }
}

impl fmt::Display for DraftStreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (id, seq)) in self.0.iter().enumerate() {
            let between = if at > 0 { "-" } else { "" };
            write!(f, "{between}{id}.{seq}")?;
        }
        Ok(())
    }
}

impl WorkspaceRegistry {
    /// Polls the journals for records from other processes until `closing` is cancelled. One poll
    /// serves all streams.
    pub async fn watch(self: Arc<Self>, closing: CancellationToken) {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heads: BTreeMap<String, u64> = BTreeMap::new();
        let mut last_cleanup: Option<Instant> = None;
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let clean_up = last_cleanup.is_none_or(|at| at.elapsed() >= CLEANUP_INTERVAL);
            if clean_up {
                last_cleanup = Some(Instant::now());
            }
            for one in &self.all {
                if let Some(head) = poll_workspace(one, clean_up).await
                    && heads.insert(one.id.clone(), head) != Some(head)
                {
                    self.notifier.notify();
                }
            }
        }
    }
}

async fn poll_workspace(one: &ServedWorkspace, clean_up: bool) -> Option<u64> {
    let store = Arc::clone(&one.store);
    let polled = tokio::task::spawn_blocking(move || {
        if clean_up {
            store.tidy()?;
        }
        store.catch_up()
    });
    match polled.await {
        Ok(Ok(head)) => Some(head),
        Ok(Err(error)) => {
            tracing::warn!(target: "moothall::server", %error, "cannot read a draft journal");
            None
        }
        Err(_) => None,
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct DraftStreamQuery {
    after: Option<String>,
}

/// Opens an event stream. Without a cursor it starts with the next event.
pub(crate) async fn events(
    Shared(app): Shared<AppState>,
    caller: CallerIdentity,
    QueryParams(query): QueryParams<DraftStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let last_seen = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let position = last_seen.or(query.after.as_deref());
    let mut cursor = match position {
        Some(text) => DraftStreamCursor::parse(text).ok_or_else(|| {
            ApiProblem::bad_request(
                "invalid cursor: use the cursor from `GET /api/drafts` or from an event",
            )
        })?,
        None => DraftStreamCursor::default(),
    };
    // Workspaces missing from the cursor were added after it was issued; start at their current
    // head.
    let known = app.workspaces.all.iter().map(|one| one.id.as_str());
    for id in known.filter(|id| !cursor.0.contains_key(*id)).collect::<Vec<_>>() {
        let head = read_notifications(&app, id, u64::MAX).await.map_or(0, |batch| batch.head);
        cursor.set(id, head);
    }
    cursor.0.retain(|id, _| app.workspaces.all.iter().any(|one| one.id == *id));
    let permit = app.access.streams.open(&caller)?;
    Ok((EVENT_STREAM, stream(app, cursor, permit)).into_response())
}

fn stream(app: AppState, mut cursor: DraftStreamCursor, permit: StreamPermit) -> Body {
    Body::from_stream(async_stream::stream! {
        let _permit = permit;
        let mut changes = app.workspaces.notifier.0.subscribe();
        let heartbeat = app.options.heartbeat;
        let hello = json!({
            "schema": SCHEMA,
            "build": BUILD,
            "cursor": cursor.to_string(),
            "heartbeat_ms": heartbeat.as_millis() as u64,
        });
        yield Ok::<_, Infallible>(Bytes::from(
            format!("retry: 1000\n: ok\n\nevent: hello\ndata: {hello}\n\n"),
        ));
        let ends = Instant::now() + app.options.max_age;
        let mut next_heartbeat = Instant::now() + heartbeat;
        loop {
            changes.borrow_and_update();
            let ids: Vec<String> = cursor.0.keys().cloned().collect();
            for id in ids {
                let after = cursor.0.get(&id).copied().unwrap_or(0);
                let Some(batch) = read_notifications(&app, &id, after).await else { return };
                let frames = frames(&mut cursor, &id, after, &batch);
                if !frames.is_empty() {
                    yield Ok(frames);
                    next_heartbeat = Instant::now() + heartbeat;
                }
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep_until(next_heartbeat) => {
                    next_heartbeat = Instant::now() + heartbeat;
                    yield Ok(Bytes::from_static(b": hb\n\n"));
                }
                () = tokio::time::sleep_until(ends) => {
                    yield Ok(bye("max_age"));
                    return;
                }
                () = app.closing.cancelled() => {
                    yield Ok(bye("shutdown"));
                    return;
                }
            }
        }
    })
}

async fn read_notifications(app: &AppState, id: &str, after: u64) -> Option<NotificationBatch> {
    let one = app.workspaces.all.iter().find(|one| one.id == id)?;
    let store = Arc::clone(&one.store);
    // Hundreds of streams may be notified of the same change at once, so their reads are limited.
    let permit = Arc::clone(&one.stream_reads).acquire_owned().await.ok()?;
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        store.notifications_after(after)
    });
    read.await.ok()
}

/// Returns new events as frames and advances the cursor past them. Changes without a notification
/// of their own, such as a withdrawn draft, are sent as `drafts_changed`, which asks the client to
/// reload the list.
fn frames(
    cursor: &mut DraftStreamCursor,
    id: &str,
    after: u64,
    batch: &NotificationBatch,
) -> Bytes {
    let mut text = String::new();
    // A head before the cursor means that the journal was replaced.
    if batch.head == after {
        return Bytes::new();
    }
    for entry in &batch.entries {
        cursor.set(id, entry.seq);
        let name = entry.kind.name();
        let data = event(id, entry);
        text.push_str(&format!("id: {cursor}\nevent: {name}\ndata: {data}\n\n"));
    }
    let is_complete =
        batch.entries.last().is_some_and(|entry| entry.seq == batch.head) && !batch.missed;
    cursor.set(id, batch.head);
    if !is_complete {
        let data = json!({ "type": "drafts_changed", "workspace": id, "missed": batch.missed });
        text.push_str(&format!("id: {cursor}\nevent: drafts_changed\ndata: {data}\n\n"));
    }
    text.into()
}

fn event(workspace: &str, entry: &NotificationEntry) -> serde_json::Value {
    json!({
        "type": entry.kind.name(),
        "workspace": workspace,
        "seq": entry.seq,
        "at": rfc3339(entry.at_ms),
        "draft_id": entry.draft,
        "task_id": entry.task,
        "path": entry.path,
        "reasons": entry.reasons,
        "diffstat": entry.lines.map(|(added, removed)| json!({ "added": added, "removed": removed })),
    })
}
