//! Detects draft changes, for waiting calls and for subscriptions.
//!
//! Decisions are made in other processes, so drafts are polled; the journal is read incrementally.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::draft_schemas::MAX_WAIT_S;
use crate::ipc::{IpcClient, IpcError, IpcRequest, IpcResponse};
use crate::tools::ToolName;

/// Poll interval for a waiting call.
const CALL_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Poll interval for subscriptions.
const SUBSCRIPTION_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

const SCHEME: &str = "moothall://draft/";
const DIFF: &str = "/diff";

/// Builds the URI of a draft's diff.
pub(crate) fn uri_of(draft: &str) -> String {
    format!("{SCHEME}{draft}{DIFF}")
}

/// Returns the draft id of a diff URI.
pub(crate) fn draft_of(uri: &str) -> Option<&str> {
    let draft = uri.strip_prefix(SCHEME)?.strip_suffix(DIFF)?;
    moothall_core::drafts::DraftId::parse(draft).map(|_| draft)
}

/// Returns the parts of a draft status that identify a change.
fn status_key(answer: &IpcResponse) -> Option<(Value, Value)> {
    match answer {
        IpcResponse::Done { result, .. } => {
            Some((result.get("state")?.clone(), result.get("revision")?.clone()))
        }
        IpcResponse::Refused { .. } | IpcResponse::Broken { .. } => None,
    }
}

/// Reports whether the draft has reached a final state.
fn is_settled(answer: &IpcResponse) -> bool {
    let Some((state, _)) = status_key(answer) else { return true };
    let waits = ["editing", "submitted", "escalated", "accepted", "applying", "conflict"];
    !waits.iter().any(|word| state == *word)
}

/// Polls a status until it changes, the time is up or the caller cancels.
pub(crate) async fn wait(
    gate: &IpcClient,
    request: &IpcRequest,
    wait_s: u64,
    context: &RequestContext<RoleServer>,
) -> Result<IpcResponse, IpcError> {
    let start = Instant::now();
    let until = start + Duration::from_secs(wait_s.min(MAX_WAIT_S));
    let first = gate.ask(request).await?;
    let mut last_progress = start;
    let mut now = first.clone();
    while !is_settled(&now) && status_key(&now) == status_key(&first) && Instant::now() < until {
        tokio::select! {
            () = context.ct.cancelled() => break,
            () = tokio::time::sleep(CALL_POLL_INTERVAL) => {}
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            send_progress(context, start.elapsed(), wait_s).await;
        }
        now = gate.ask(request).await?;
    }
    Ok(now)
}

/// Starts a consultation or reads its status, then polls it until it ends, the time is up or the
/// caller cancels. Progress is counted in model calls.
pub(crate) async fn wait_for_run(
    runner: &IpcClient,
    request: &IpcRequest,
    wait_s: u64,
    context: &RequestContext<RoleServer>,
) -> Result<IpcResponse, IpcError> {
    let until = Instant::now() + Duration::from_secs(wait_s.min(MAX_WAIT_S));
    // Starting a run reads filings and checks sandboxes first.
    let mut now = with_progress(runner.ask(request), context).await?;
    let mut reported = None;
    while let Some((run_id, done, total)) = running(&now)
        && Instant::now() < until
    {
        if reported != Some(done) {
            reported = Some(done);
            let message = format!("{done} of about {total} model calls");
            notify(context, done as f64, Some(total as f64), Some(message)).await;
        }
        tokio::select! {
            () = context.ct.cancelled() => break,
            () = tokio::time::sleep(SUBSCRIPTION_POLL_INTERVAL) => {}
        }
        let arguments = Map::from_iter([("run_id".to_owned(), run_id.into())]);
        let status = IpcRequest::Call { tool: ToolName::RunStatus, arguments, client: None };
        now = runner.ask(&status).await?;
    }
    Ok(now)
}

/// The id of a run that has not ended, with its finished and expected calls.
fn running(answer: &IpcResponse) -> Option<(String, u64, u64)> {
    let IpcResponse::Done { result, .. } = answer else { return None };
    let count = |name: &str| result.get(name).and_then(Value::as_u64);
    let run_id = result.get("run_id")?.as_str()?.to_owned();
    (result.get("state")? == "running").then_some(())?;
    Some((run_id, count("calls_done")?, count("calls_expected")?))
}

/// Sends a progress notification if the caller asked for it.
pub(crate) async fn send_progress(
    context: &RequestContext<RoleServer>,
    elapsed: Duration,
    of_s: u64,
) {
    notify(context, elapsed.as_secs_f64(), (of_s > 0).then_some(of_s as f64), None).await;
}

async fn notify(
    context: &RequestContext<RoleServer>,
    done: f64,
    total: Option<f64>,
    message: Option<String>,
) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut progress = ProgressNotificationParam::new(token, done);
    progress.total = total;
    progress.message = message;
    // A failed notification means that the caller is gone.
    let _ = context.peer.notify_progress(progress).await;
}

/// Runs work with periodic progress notifications.
pub(crate) async fn with_progress<T>(
    work: impl Future<Output = T>,
    context: &RequestContext<RoleServer>,
) -> T {
    let start = Instant::now();
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => send_progress(context, start.elapsed(), 0).await,
        }
    }
}

/// Polls the drafts of a subscription.
#[derive(Debug)]
pub(crate) struct DraftWatcher {
    gate: IpcClient,
    drafts: Vec<(String, Option<(Value, Value)>)>,
}

impl DraftWatcher {
    /// Records the current status of the drafts with these URIs.
    pub(crate) async fn start(gate: IpcClient, uris: impl IntoIterator<Item = String>) -> Self {
        let mut drafts = Vec::new();
        for uri in uris {
            let now = poll_status(&gate, &uri).await;
            drafts.push((uri, now));
        }
        Self { gate, drafts }
    }

    /// Waits until drafts have changed, and returns their URIs.
    pub(crate) async fn changed(&mut self) -> Vec<String> {
        loop {
            tokio::time::sleep(SUBSCRIPTION_POLL_INTERVAL).await;
            let mut changed = Vec::new();
            for (uri, before) in &mut self.drafts {
                let now = poll_status(&self.gate, uri).await;
                if now != *before {
                    *before = now;
                    changed.push(uri.clone());
                }
            }
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    /// Notifies a client of the older protocol until it unsubscribes or disconnects.
    pub(crate) async fn notify_changes(mut self, peer: Peer<RoleServer>, over: CancellationToken) {
        loop {
            let changed = tokio::select! {
                changed = self.changed() => changed,
                () = over.cancelled() => return,
            };
            for uri in changed {
                let update = ResourceUpdatedNotificationParam::new(uri);
                if peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn poll_status(gate: &IpcClient, uri: &str) -> Option<(Value, Value)> {
    let draft = draft_of(uri)?;
    status_key(&gate.ask(&status(draft)).await.ok()?)
}

fn status(draft: &str) -> IpcRequest {
    let arguments = Map::from_iter([("draft_id".to_owned(), draft.into())]);
    IpcRequest::Call { tool: ToolName::DraftStatus, arguments, client: None }
}
