//! `GET /api/drafts/events`: what becomes of drafts, as it does, whoever decides it and where.

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
use moothall_workspace::{Heard, Told};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Workspace, Workspaces};
use crate::access::StreamPermit;
use crate::app::BUILD;
use crate::asked::Asked;
use crate::stream::{EVENT_STREAM, SCHEMA, bye};
use crate::times::rfc3339;
use crate::{App, Problem, Who};

/// How often journals are read for what other processes wrote.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// How often what nobody touched for too long is closed.
const TIDY_EVERY: Duration = Duration::from_secs(10 * 60);

/// Tells those who follow that a journal may have grown.
#[derive(Debug)]
pub(super) struct Bell(watch::Sender<u64>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Bell {
    pub(super) fn ring(&self) {
        self.0.send_modify(|rung| *rung += 1);
    }
}

/// How far somebody has heard of each workspace: `id.seq`, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cursor(BTreeMap<String, u64>);

impl Cursor {
    pub(super) fn set(&mut self, workspace: &str, seq: u64) {
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

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (id, seq)) in self.0.iter().enumerate() {
            let between = if at > 0 { "-" } else { "" };
            write!(f, "{between}{id}.{seq}")?;
        }
        Ok(())
    }
}

impl Workspaces {
    /// Reads what other processes write, until `closing`: once for everybody who follows.
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

async fn look(one: &Workspace, tidy: bool) -> Option<u64> {
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
            tracing::warn!(target: "moothall::server", %error, "a journal cannot be read");
            None
        }
        Err(_) => None,
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct After {
    after: Option<String>,
}

/// Answers with a stream. Whoever names no cursor hears what happens from now on.
pub(crate) async fn events(
    Shared(app): Shared<App>,
    who: Who,
    Asked(query): Asked<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last_seen = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let told = last_seen.or(query.after.as_deref());
    let mut cursor = match told {
        Some(text) => Cursor::parse(text).ok_or_else(|| {
            Problem::bad_request("a cursor is what `GET /api/drafts` or an event said")
        })?,
        None => Cursor::default(),
    };
    // A workspace that is not in it was not kept then.
    let known = app.workspaces.all.iter().map(|one| one.id.as_str());
    for id in known.filter(|id| !cursor.0.contains_key(*id)).collect::<Vec<_>>() {
        let head = heard(&app, id, u64::MAX).await.map_or(0, |heard| heard.head);
        cursor.set(id, head);
    }
    cursor.0.retain(|id, _| app.workspaces.all.iter().any(|one| one.id == *id));
    let permit = app.access.streams.open(&who)?;
    Ok((EVENT_STREAM, stream(app, cursor, permit)).into_response())
}

fn stream(app: App, mut cursor: Cursor, permit: StreamPermit) -> Body {
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

async fn heard(app: &App, id: &str, after: u64) -> Option<Heard> {
    let one = app.workspaces.all.iter().find(|one| one.id == id)?;
    let store = Arc::clone(&one.store);
    // A stream waits for its turn: hundreds of them hear of a change at the same moment.
    let permit = Arc::clone(&one.stream_reads).acquire_owned().await.ok()?;
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        store.heard(after)
    });
    read.await.ok()
}

/// What is new as frames, and the cursor moved behind it. What is no news by name, such as a draft
/// that was taken back, is told as `drafts_changed`: where drafts stand is worth another look.
fn frames(cursor: &mut Cursor, id: &str, after: u64, heard: &Heard) -> Bytes {
    let mut text = String::new();
    // A journal that is shorter than the cursor is another one.
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

fn event(workspace: &str, told: &Told) -> serde_json::Value {
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
