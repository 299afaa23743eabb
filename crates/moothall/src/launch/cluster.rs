//! Runs executed by the workers of a Restate cluster.

use std::time::Duration;

use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::{PauseReason, RunEventBody, RunId, RunKind, StoredSpec};
use moothall_engine::{RunExit, RunPause, RunRecord};
use moothall_models::Budget;
use moothall_restate::{ClusterError, RestateIngress, RestateService};
use moothall_store::{ControlRequest, RunState, Store, StoreError, StoredEvent};

use crate::error::{CliError, CliExit};
use crate::run_store;

/// Poll interval for new events.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Attempts to submit a run to a cluster that does not answer, and the delay between them.
const START_TRIES: u32 = 3;
const START_RETRY_DELAY: Duration = Duration::from_secs(1);

const PAGE: u32 = 1000;

pub(crate) fn cluster_error(error: ClusterError) -> CliError {
    let hint = match &error {
        ClusterError::Unreachable { .. } => {
            "is Restate running? `moothall cluster up` starts it on this machine"
        }
        ClusterError::Refused { status: 404, .. } => {
            "no worker is registered: run `moothall worker --register`"
        }
        ClusterError::OtherBuild { .. } => {
            "each build needs its own address, because a run finishes on the build that started it: \
             use another address, such as `--listen 127.0.0.1:0` for a free port"
        }
        _ => "see the log of Restate",
    };
    CliError::failed("the cluster did not accept the run").with_source(error).with_hint(hint)
}

fn restate_service(spec: &StoredSpec) -> RestateService {
    match spec.is_kind(RunKind::Program) {
        true => RestateService::CodeRun,
        false => RestateService::Consultation,
    }
}

/// Submits a new run to a cluster. If the cluster surely does not have it, the run is deleted,
/// because no worker would ever execute it. If the result is unknown, the run is kept, because it
/// may have started.
pub(crate) async fn submit_new_run(
    restate: &str,
    spec: &StoredSpec,
    store: &dyn Store,
    run_id: &RunId,
) -> Result<(), CliError> {
    let Err(error) = start(restate, spec, run_id).await else { return Ok(()) };
    if error.had_no_effect() {
        store.delete_runs(std::slice::from_ref(run_id)).await.map_err(run_store::store_error)?;
        return Err(cluster_error(error));
    }
    let id = run_store::short_id(run_id);
    Err(CliError::failed("unknown whether the cluster accepted the run")
        .with_source(error)
        .with_hint(format!("run `moothall resume {id}`, which submits it again if necessary")))
}

/// Submits a run to a cluster. Idempotent; retried if the result is unknown.
pub(crate) async fn start(
    restate: &str,
    spec: &StoredSpec,
    run_id: &RunId,
) -> Result<(), ClusterError> {
    let (cluster, service) = (RestateIngress::new(restate)?, restate_service(spec));
    let mut tries = 1;
    loop {
        match cluster.start(service, run_id).await {
            Err(error) if !error.had_no_effect() && tries < START_TRIES => {
                tries += 1;
                tokio::time::sleep(START_RETRY_DELAY).await;
            }
            started => return started,
        }
    }
}

/// Resumes a paused run. A run that never reached the cluster, because its creator died, is
/// started; an active run is left alone.
pub(crate) async fn resume(
    restate: &str,
    store: &dyn Store,
    run_id: &RunId,
    budget: Budget,
) -> Result<(), CliError> {
    let row = store.run(run_id).await.map_err(run_store::store_error)?;
    let spec = row.ok_or_else(|| run_store::no_such_run(run_id.as_str()))?.spec;
    start(restate, &spec, run_id).await.map_err(cluster_error)?;
    // Read after the start, because the run may pause or end in the meantime.
    let record = RunRecord::read(store, run_id).await.map_err(run_store::store_error)?;
    if record.row.state != RunState::Paused {
        return Ok(());
    }
    let cluster = RestateIngress::new(restate).map_err(cluster_error)?;
    cluster
        .resume(restate_service(&spec), run_id, pause_count(&record.events), budget)
        .await
        .map_err(cluster_error)
}

/// Requests the cancellation of a run. A paused run must resume to see the request, and a run that
/// no worker has must start.
pub(crate) async fn cancel(
    restate: &str,
    store: &dyn Store,
    run_id: &RunId,
) -> Result<(), CliError> {
    match store.request_control(run_id, ControlRequest::Cancel).await {
        Ok(()) => {}
        Err(StoreError::RunEnded { .. }) => return Ok(()),
        Err(error) => return Err(run_store::store_error(error)),
    }
    // The state is read after the request, because a pausing run checks for requests only after it
    // has recorded the pause.
    resume(restate, store, run_id, Budget::default()).await.map_err(|error| {
        let id = run_store::short_id(run_id);
        error.with_hint(format!(
            "the request is stored and takes effect when the cluster is available; without a cluster, \
             delete the run: `moothall runs rm {id} --force`"
        ))
    })
}

/// The number of pauses of a run.
fn pause_count(events: &[StoredEvent]) -> u32 {
    let number = |stored: &StoredEvent| match stored.event.body {
        RunEventBody::RunPaused { number, .. } => number,
        _ => 0,
    };
    events.iter().map(number).max().unwrap_or_default()
}

/// The message when the user stops watching a run.
pub(crate) fn detached_error(run_id: &RunId) -> CliError {
    let id = run_store::short_id(run_id);
    let message = format!("stopped watching run {id}; it continues");
    CliError::new(CliExit::Cancelled, message).with_hint(format!(
        "follow it with `moothall events {id} --follow`, or cancel it with `moothall cancel {id}`"
    ))
}

/// Reports the events after `before`, until the run ends or pauses.
pub(crate) async fn follow_until_stopped(
    store: &dyn Store,
    run_id: &RunId,
    before: &[StoredEvent],
    mut on_event: impl FnMut(&StoredEvent),
) -> Result<RunExit, CliError> {
    let mut seen = before.last().map_or(0, |stored| stored.seq);
    let pauses = pause_count(before);
    loop {
        let events = store.events(run_id, seen, PAGE).await.map_err(run_store::store_error)?;
        for stored in &events {
            seen = stored.seq;
            on_event(stored);
            match &stored.event.body {
                RunEventBody::RunPaused { number, reason, detail } if *number > pauses => {
                    return Ok(RunExit::Paused(run_pause(*reason, detail)));
                }
                RunEventBody::RunCancelled => return Ok(RunExit::Cancelled),
                body if body.is_terminal() => return terminal_exit(store, run_id, body).await,
                _ => {}
            }
        }
        if events.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

async fn terminal_exit(
    store: &dyn Store,
    run_id: &RunId,
    body: &RunEventBody,
) -> Result<RunExit, CliError> {
    let row = store.run(run_id).await.map_err(run_store::store_error)?;
    match (row.and_then(|row| row.outcome), body) {
        (Some(outcome), _) => Ok(RunExit::Done(outcome)),
        (None, RunEventBody::RunFailed { detail, .. }) => {
            Err(CliError::failed(format!("the run failed: {detail}")))
        }
        (None, _) => Err(run_store::no_such_run(run_id.as_str())),
    }
}

fn run_pause(reason: PauseReason, detail: &str) -> RunPause {
    match reason {
        PauseReason::Budget => RunPause::Budget(ModelFailure::new(FailureKind::OverBudget, detail)),
        PauseReason::Question => RunPause::Question(detail.to_owned()),
        PauseReason::Failure => match detail.split_once(": ").map(|(it, why)| (it.parse(), why)) {
            Some((Ok(model), why)) => {
                let (kind, why) = failure_kind(why).unwrap_or((FailureKind::Auth, why));
                RunPause::Failure(model, ModelFailure::new(kind, why))
            }
            _ => RunPause::Person,
        },
        PauseReason::Person => RunPause::Person,
    }
}
/// The kind at the start of a pause's detail. Pauses of older versions have none.
fn failure_kind(detail: &str) -> Option<(FailureKind, &str)> {
    let (kind, why) = detail.split_once(": ")?;
    Some((serde_json::from_value(kind.into()).ok()?, why))
}
