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
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// How often expired drafts are closed.
const TIDY_EVERY: Duration = Duration::from_secs(10 * 60);

/// Notifies streams that a journal may have grown.
#[derive(Debug)]
pub(crate) struct DraftNotifier(watch::Sender<u64>);

impl Default for DraftNotifier {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl DraftNotifier {
    pub(crate) fn ring(&self) {
        self.0.send_modify(|rung| *rung += 1);
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
        let mut looks = tokio::time::interval(LOOK_AGAIN);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heads: BTreeMap<String, u64> = BTreeMap::new();
        let mut tidied: Option<Instant> = None;
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                _ = looks.tick() => {}
            }
            let tidy = tidied.is_none_or(|at| at.elapsed() >= TIDY_EVERY);
            if tidy {
                tidied = Some(Instant::now());
            }
            for one in &self.all {
                if let Some(head) = look(one, tidy).await
                    && heads.insert(one.id.clone(), head) != Some(head)
                {
                    self.bell.ring();
                }
            }
        }
    }
}

async fn look(one: &ServedWorkspace, tidy: bool) -> Option<u64> {
    let store = Arc::clone(&one.store);
    let looked = tokio::task::spawn_blocking(move || {
        if tidy {
            store.tidy()?;
        }
        store.catch_up()
    });
    match looked.await {
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
    who: CallerIdentity,
    QueryParams(query): QueryParams<DraftStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let last_seen = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let told = last_seen.or(query.after.as_deref());
    let mut cursor = match told {
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
        let head = heard(&app, id, u64::MAX).await.map_or(0, |heard| heard.head);
        cursor.set(id, head);
    }
    cursor.0.retain(|id, _| app.workspaces.all.iter().any(|one| one.id == *id));
    let permit = app.access.streams.open(&who)?;
    Ok((EVENT_STREAM, stream(app, cursor, permit)).into_response())
}

fn stream(app: AppState, mut cursor: DraftStreamCursor, permit: StreamPermit) -> Body {
    Body::from_stream(async_stream::stream! {
        let _permit = permit;
        let mut rung = app.workspaces.bell.0.subscribe();
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
        let mut beat = Instant::now() + heartbeat;
        loop {
            rung.borrow_and_update();
            let ids: Vec<String> = cursor.0.keys().cloned().collect();
            for id in ids {
                let after = cursor.0.get(&id).copied().unwrap_or(0);
                let Some(heard) = heard(&app, &id, after).await else { return };
                let frames = frames(&mut cursor, &id, after, &heard);
                if !frames.is_empty() {
                    yield Ok(frames);
                    beat = Instant::now() + heartbeat;
                }
            }
            tokio::select! {
                changed = rung.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep_until(beat) => {
                    beat = Instant::now() + heartbeat;
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

async fn heard(app: &AppState, id: &str, after: u64) -> Option<NotificationBatch> {
    let one = app.workspaces.all.iter().find(|one| one.id == id)?;
    let store = Arc::clone(&one.store);
    // Hundreds of streams may be notified of the same change at once, so their reads are limited.
    let permit = Arc::clone(&one.stream_reads).acquire_owned().await.ok()?;
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        store.heard(after)
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
    heard: &NotificationBatch,
) -> Bytes {
    let mut text = String::new();
    // A head before the cursor means that the journal was replaced.
    if heard.head == after {
        return Bytes::new();
    }
    for told in &heard.news {
        cursor.set(id, told.seq);
        let name = told.kind.name();
        let data = event(id, told);
        text.push_str(&format!("id: {cursor}\nevent: {name}\ndata: {data}\n\n"));
    }
    let is_told = heard.news.last().is_some_and(|told| told.seq == heard.head) && !heard.missed;
    cursor.set(id, heard.head);
    if !is_told {
        let data = json!({ "type": "drafts_changed", "workspace": id, "missed": heard.missed });
        text.push_str(&format!("id: {cursor}\nevent: drafts_changed\ndata: {data}\n\n"));
    }
    text.into()
}

fn event(workspace: &str, told: &NotificationEntry) -> serde_json::Value {
    json!({
        "type": told.kind.name(),
        "workspace": workspace,
        "seq": told.seq,
        "at": rfc3339(told.at_ms),
        "draft_id": told.draft,
        "task_id": told.task,
        "path": told.path,
        "reasons": told.reasons,
        "diffstat": told.lines.map(|(added, removed)| json!({ "added": added, "removed": removed })),
    })
}
