//! Waiting for drafts to change, for callers that wait and for those that are told.
//!
//! Decisions are made in other processes, so a draft is looked at again and again; the journal is
//! read from where it was left.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::draft_schemas::MAX_WAIT_S;
use crate::ipc::{Answer, Ask, Link, LinkError};
use crate::tools::ToolName;

/// How often a draft is looked at for a caller that waits.
const LOOK: Duration = Duration::from_millis(250);
/// How often for one that is told.
const GLANCE: Duration = Duration::from_secs(1);
/// How often a caller is told that it still waits.
const TICK: Duration = Duration::from_secs(5);

const SCHEME: &str = "moothall://draft/";
const DIFF: &str = "/diff";

/// The address of a draft's difference.
pub(super) fn uri_of(draft: &str) -> String {
    format!("{SCHEME}{draft}{DIFF}")
}

/// The draft of such an address.
pub(super) fn draft_of(uri: &str) -> Option<&str> {
    let draft = uri.strip_prefix(SCHEME)?.strip_suffix(DIFF)?;
    moothall_core::drafts::DraftId::parse(draft).map(|_| draft)
}

/// What of a draft's status says that something happened.
fn mark(answer: &Answer) -> Option<(Value, Value)> {
    match answer {
        Answer::Done { result, .. } => {
            Some((result.get("state")?.clone(), result.get("revision")?.clone()))
        }
        Answer::Refused { .. } | Answer::Broken { .. } => None,
    }
}

/// Whether nothing more can become of it.
fn is_settled(answer: &Answer) -> bool {
    let Some((state, _)) = mark(answer) else { return true };
    let waits = ["editing", "submitted", "escalated", "accepted", "applying", "conflict"];
    !waits.iter().any(|word| state == *word)
}

/// Asks for a status until it differs from the first one, the time is over or the caller is gone.
pub(super) async fn wait(
    gate: &Link,
    ask: &Ask,
    wait_s: u64,
    context: &RequestContext<RoleServer>,
) -> Result<Answer, LinkError> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(wait_s.min(MAX_WAIT_S));
    let first = gate.ask(ask).await?;
    let mut told = begun;
    let mut now = first.clone();
    while !is_settled(&now) && mark(&now) == mark(&first) && Instant::now() < until {
        tokio::select! {
            () = context.ct.cancelled() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        if told.elapsed() >= TICK {
            told = Instant::now();
            tick(context, begun.elapsed(), wait_s).await;
        }
        now = gate.ask(ask).await?;
    }
    Ok(now)
}

/// Tells a caller that wants to know it how long it has been.
pub(super) async fn tick(context: &RequestContext<RoleServer>, so_far: Duration, of_s: u64) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut progress = ProgressNotificationParam::new(token, so_far.as_secs_f64());
    progress.total = (of_s > 0).then_some(of_s as f64);
    // Whoever does not hear it does not wait any more.
    let _ = context.peer.notify_progress(progress).await;
}

/// Runs work and tells the caller every so often that it goes on.
pub(super) async fn ticking<T>(
    work: impl Future<Output = T>,
    context: &RequestContext<RoleServer>,
) -> T {
    let begun = Instant::now();
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(TICK) => tick(context, begun.elapsed(), 0).await,
        }
    }
}

/// Drafts that are looked at for somebody who subscribed to them.
#[derive(Debug)]
pub(super) struct Watched {
    gate: Link,
    drafts: Vec<(String, Option<(Value, Value)>)>,
}

impl Watched {
    /// Remembers how the drafts of these addresses are now.
    pub(super) async fn start(gate: Link, uris: impl IntoIterator<Item = String>) -> Self {
        let mut drafts = Vec::new();
        for uri in uris {
            let now = look(&gate, &uri).await;
            drafts.push((uri, now));
        }
        Self { gate, drafts }
    }

    /// Waits until some of them have changed, and gives their addresses.
    pub(super) async fn changed(&mut self) -> Vec<String> {
        loop {
            tokio::time::sleep(GLANCE).await;
            let mut changed = Vec::new();
            for (uri, before) in &mut self.drafts {
                let now = look(&self.gate, uri).await;
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

    /// Tells a client of the older protocol, until it wants to know no more or is gone.
    pub(super) async fn tell(mut self, peer: Peer<RoleServer>, over: CancellationToken) {
        loop {
            let changed = tokio::select! {
                changed = self.changed() => changed,
                () = over.cancelled() => return,
            };
            for uri in changed {
                let told = ResourceUpdatedNotificationParam::new(uri);
                if peer.notify_resource_updated(told).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn look(gate: &Link, uri: &str) -> Option<(Value, Value)> {
    let draft = draft_of(uri)?;
    mark(&gate.ask(&status(draft)).await.ok()?)
}

fn status(draft: &str) -> Ask {
    let arguments = Map::from_iter([("draft_id".to_owned(), draft.into())]);
    Ask::Call { tool: ToolName::DraftStatus, arguments, client: None }
}
