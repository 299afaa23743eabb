//! A consultation that the workers of a Restate cluster drive, followed from here.

use std::time::Duration;

use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::{PauseReason, RunEventBody, RunId};
use moothall_engine::{Ended, Pause, RunRecord};
use moothall_models::Budget;
use moothall_restate::{Cluster, ClusterError};
use moothall_store::{RunRow, RunState, Store, StoreError, StoredEvent, Wish};
use serde_json::Value;

use super::drive::{Left, name_moves};
use super::kept::Kept;
use super::screen::{SharedScreen, shown};
use crate::commands::Interruptible;
use crate::commands::watched;
use crate::error::{CliError, Exit};
use crate::local::{self, Local};

/// How often it is looked for what has happened.
const LOOK: Duration = Duration::from_millis(200);

/// How many events are read at once.
const PAGE: u32 = 1000;

pub(super) fn cluster(ingress: &str) -> Result<Cluster, CliError> {
    Cluster::new(ingress).map_err(refused)
}

/// What a person is told where Restate does not do what it is asked.
pub(in crate::commands) fn refused(error: ClusterError) -> CliError {
    let hint = match &error {
        ClusterError::Unreachable { .. } => {
            "is the server up? `tools/restate/up.sh` starts one on this machine"
        }
        ClusterError::Refused { status: 404, .. } => {
            "no worker is known there: `moothall worker --register`"
        }
        _ => "its log says more",
    };
    CliError::failed("the cluster does not take the run").with_source(error).with_hint(hint)
}

/// Starts a run that the store knows, and follows it to where it stops.
pub(super) async fn start(
    cluster: &Cluster,
    local: &Local,
    run_id: &RunId,
    kept: &Kept,
    screen: &SharedScreen,
) -> anyhow::Result<Left> {
    if let Err(error) = cluster.start(run_id).await {
        // Nobody will ever drive it.
        let gone = local.store.delete_runs(std::slice::from_ref(run_id)).await;
        gone.map_err(local::broken)?;
        return Err(refused(error).into());
    }
    follow(local, run_id, 0, 0, kept, screen).await
}

/// Lets a run go on that stands still, or follows one that does not.
pub(super) async fn go_on(
    cluster: &Cluster,
    local: &Local,
    row: &RunRow,
    budget: Budget,
    kept: &Kept,
    screen: &SharedScreen,
) -> anyhow::Result<Left> {
    let record = RunRecord::read(&*local.store, &row.run_id).await.map_err(local::broken)?;
    shown(screen).catch_up(&record.events);
    let pauses = pauses(&record.events);
    if row.state == RunState::Paused {
        cluster.go_on(&row.run_id, pauses, budget).await.map_err(refused)?;
    }
    let seen = record.events.last().map_or(0, |stored| stored.seq);
    follow(local, &row.run_id, seen, pauses, kept, screen).await
}

/// Where the Restate is whose workers drive a run, if they do.
pub(in crate::commands) fn restate_of(row: &RunRow) -> Option<&str> {
    row.input.pointer("/settings/restate").and_then(Value::as_str)
}

/// Asks the workers of a run to end it. One that stands still must go on to hear of it.
pub(in crate::commands) async fn cancel(
    restate: &str,
    store: &dyn Store,
    row: &RunRow,
) -> Result<(), CliError> {
    match store.ask(&row.run_id, Wish::Cancel).await {
        Ok(()) => {}
        Err(StoreError::RunEnded { .. }) => return Ok(()),
        Err(error) => return Err(local::broken(error)),
    }
    if row.state == RunState::Paused {
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        let (cluster, pauses) = (cluster(restate)?, pauses(&record.events));
        cluster.go_on(&row.run_id, pauses, Budget::default()).await.map_err(refused)?;
    }
    Ok(())
}

/// How often a run has paused.
fn pauses(events: &[StoredEvent]) -> u32 {
    let number = |stored: &StoredEvent| match stored.event.body {
        RunEventBody::RunPaused { number, .. } => number,
        _ => 0,
    };
    events.iter().map(number).max().unwrap_or_default()
}

async fn follow(
    local: &Local,
    run_id: &RunId,
    seen: u64,
    pauses: u32,
    kept: &Kept,
    screen: &SharedScreen,
) -> anyhow::Result<Left> {
    let store = &*local.store;
    let following = Box::pin(until_it_stops(store, run_id, seen, pauses, screen));
    let tick = || shown(screen).tick();
    let followed = watched(following, super::screen::TICK, tick).await;
    if shown(screen).board.has_unnamed_moves() {
        name_moves(store, run_id, kept, screen).await;
    }
    shown(screen).close();
    match followed {
        Interruptible::Done(ended) => Ok(Left::Ended(ended?)),
        Interruptible::Cancelled => {
            let id = local::short(run_id);
            let words = format!("nobody watches run {id} from here any more; it goes on");
            Err(CliError::new(Exit::Cancelled, words)
                .with_hint(format!(
                    "follow it: `moothall events {id} --follow`; end it: `moothall cancel {id}`"
                ))
                .into())
        }
    }
}

async fn until_it_stops(
    store: &dyn Store,
    run_id: &RunId,
    mut seen: u64,
    pauses: u32,
    screen: &SharedScreen,
) -> Result<Ended, CliError> {
    loop {
        let events = store.events(run_id, seen, PAGE).await.map_err(local::broken)?;
        for stored in &events {
            seen = stored.seq;
            shown(screen).event(stored);
            match &stored.event.body {
                RunEventBody::RunPaused { number, reason, detail } if *number > pauses => {
                    return Ok(Ended::Paused(why(*reason, detail)));
                }
                RunEventBody::RunCancelled => return Ok(Ended::Cancelled),
                body if body.is_terminal() => return end(store, run_id, body).await,
                _ => {}
            }
        }
        if events.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn end(store: &dyn Store, run_id: &RunId, body: &RunEventBody) -> Result<Ended, CliError> {
    let row = store.run(run_id).await.map_err(local::broken)?;
    match (row.and_then(|row| row.outcome), body) {
        (Some(outcome), _) => Ok(Ended::Done(outcome)),
        (None, RunEventBody::RunFailed { detail }) => {
            Err(CliError::failed(format!("the run cannot go on: {detail}")))
        }
        (None, _) => Err(local::no_such_run(run_id.as_str())),
    }
}

fn why(reason: PauseReason, detail: &str) -> Pause {
    match reason {
        PauseReason::Budget => Pause::Budget(ModelFailure::new(FailureKind::OverBudget, detail)),
        PauseReason::Question => Pause::Question(detail.to_owned()),
        PauseReason::Person | PauseReason::Failure => Pause::Person,
    }
}
