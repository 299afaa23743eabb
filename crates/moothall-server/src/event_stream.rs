//! `GET /api/runs/{run}/events`: stream of a run's events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use moothall_core::ErrorCode;
use moothall_core::RunId;
use moothall_core::access::AccessScope;
use moothall_store::RunRow;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::access::StreamPermit;
use crate::app::BUILD;
use crate::extract::{PathParams, QueryParams};
use crate::feed::frame;
use crate::{ApiProblem, AppState, CallerIdentity};

/// Version of the stream format.
pub(crate) const SCHEMA: u32 = 1;

/// Headers of every stream: proxies must not cache, transform or buffer it.
pub(crate) const EVENT_STREAM: [(header::HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/event-stream"),
    (header::CACHE_CONTROL, "no-cache, no-transform"),
    (header::HeaderName::from_static("x-accel-buffering"), "no"),
];

/// How long events are collected before they are sent. The delay is not noticeable, and a thousand
/// clients of a busy run wake up 20 times per second instead of once per event.
const BATCH_WINDOW: Duration = Duration::from_millis(50);

/// Position at which a client starts.
#[derive(Debug, Deserialize)]
pub(crate) struct EventStreamQuery {
    after: Option<String>,
}

/// Opens an event stream, or returns 204 if the run has ended and the client has all its events.
pub(crate) async fn events(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    QueryParams(query): QueryParams<EventStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    let last_seen = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let after = cursor(last_seen.or(query.after.as_deref()))?;
    if after > row.events {
        return Err(beyond_head(after, &row));
    }
    if row.state.is_terminal() && after == row.events {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let permit = app.access.streams.open(&caller)?;
    Ok((EVENT_STREAM, stream(app, row.run_id, after, permit)).into_response())
}

/// Parses a cursor; a missing one is 0.
pub(crate) fn cursor(written: Option<&str>) -> Result<u64, ApiProblem> {
    match written.map(str::trim) {
        None => Ok(0),
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_err(|_| bad_cursor())
        }
        Some(_) => Err(bad_cursor()),
    }
}

fn bad_cursor() -> ApiProblem {
    ApiProblem::new(
        StatusCode::BAD_REQUEST,
        ErrorCode::BadCursor,
        "invalid cursor: expected the sequence number of an event",
    )
    .with_hint("omit the cursor to start at the first event")
}

/// The cursor belongs to another log: this run never had so many events.
pub(crate) fn beyond_head(after: u64, row: &RunRow) -> ApiProblem {
    let words = format!("the cursor is {after}, but the run has only {} events", row.events);
    ApiProblem::conflict(ErrorCode::CursorBeyondHead, words)
        .with_hint("discard the stored events and start at 0")
}

/// Sends frames after the cursor until the run ends, the server shuts down, or the stream reaches
/// its maximum age.
fn stream(app: AppState, run_id: RunId, after: u64, permit: StreamPermit) -> Body {
    Body::from_stream(async_stream::stream! {
        let _permit = permit;
        let mut cursor = after;
        let Ok(feed) = app.feed.follow(&run_id).await else { return };
        let mut changes = feed.changes();
        let heartbeat = app.options.heartbeat;
        let head = feed.head();
        let hello = json!({
            "schema": SCHEMA,
            "build": BUILD,
            "run_id": run_id,
            "head_seq": head.seq,
            "terminal": head.terminal,
            "heartbeat_ms": heartbeat.as_millis() as u64,
        });
        yield Ok::<_, Infallible>(Bytes::from(format!("retry: 1000\n: ok\n\nevent: hello\ndata: {hello}\n\n")));
        let ends = Instant::now() + jittered(app.options.max_age, &run_id, after);
        let mut beat = Instant::now() + heartbeat;
        loop {
            let head = *changes.borrow_and_update();
            while cursor < head.seq {
                // Frames that are no longer in memory are read from the store, so a slow client
                // does not affect others.
                let next = match feed.ready(cursor) {
                    Some(ready) => Some(ready),
                    None => stored(&app, &run_id, cursor).await,
                };
                let Some((last, bytes)) = next else { return };
                cursor = last;
                yield Ok(bytes);
                beat = Instant::now() + heartbeat;
            }
            if head.deleted || (head.terminal && cursor >= head.seq) {
                return;
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // Events come in bursts; send them in one write.
                    tokio::time::sleep(BATCH_WINDOW).await;
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

/// Reads frames after a cursor from the store; `None` if that fails. The stream then ends, and the
/// client reconnects.
async fn stored(app: &AppState, run_id: &RunId, after: u64) -> Option<(u64, Bytes)> {
    let page = app.feed.page(run_id, after).await.ok()?;
    let last = page.last()?.seq;
    let frames: Vec<Bytes> = page.iter().map(|stored| frame(run_id, stored)).collect();
    Some((last, frames.concat().into()))
}

pub(crate) fn bye(reason: &str) -> Bytes {
    Bytes::from(format!("event: bye\ndata: {{\"reason\":\"{reason}\"}}\n\n"))
}

/// Varies the age by up to 10 %, so that clients that connected together do not reconnect together.
/// The variation depends on the run, the cursor and the current time.
fn jittered(age: Duration, run_id: &RunId, after: u64) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let moment = now.unwrap_or_default().subsec_nanos();
    let mix = run_id.as_str().bytes().fold(u64::from(moment) ^ after, |mix, byte| {
        mix.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
    });
    age.mul_f64(0.9 + 0.2 * ((mix >> 16) % 1000) as f64 / 1000.0)
}
