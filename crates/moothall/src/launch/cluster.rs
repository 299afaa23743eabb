//! Runs that the workers of a Restate cluster drive.

use std::time::Duration;

use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::{PauseReason, RunEventBody, RunId, RunKind, StoredSpec};
use moothall_engine::{Ended, Pause, RunRecord};
use moothall_models::Budget;
use moothall_restate::{Cluster, ClusterError, Service};
use moothall_store::{RunState, Store, StoreError, StoredEvent, Wish};

use crate::error::{CliError, Exit};
use crate::local;

/// How often it is looked for what has happened.
const LOOK: Duration = Duration::from_millis(200);

/// How often a cluster is asked to take a run where it does not answer, and the pause between.
const START_TRIES: u32 = 3;
const START_AGAIN: Duration = Duration::from_secs(1);

/// How many events are read at once.
const PAGE: u32 = 1000;

/// What a person is told where Restate does not do what it is asked.
pub(crate) fn refused(error: ClusterError) -> CliError {
    let hint = match &error {
        ClusterError::Unreachable { .. } => {
            "is the server up? `moothall cluster up` starts one on this machine"
        }
        ClusterError::Refused { status: 404, .. } => {
            "no worker is known there: `moothall worker --register`"
        }
        ClusterError::OtherBuild { .. } => {
            "each build has an address of its own, so that runs end on the build that they began \
             on: listen elsewhere, with `--listen 127.0.0.1:0` wherever it is free"
        }
        _ => "its log says more",
    };
    CliError::failed("the cluster does not take the run").with_source(error).with_hint(hint)
}

/// The service that drives runs of this kind.
fn service_of(spec: &StoredSpec) -> Service {
    match spec.is_kind(RunKind::Program) {
        true => Service::CodeRun,
        false => Service::Consultation,
    }
}

/// Gives a new run to the workers of a cluster. Where they surely do not have it, it is gone: nobody
/// would ever drive it. Where nobody knows, it stays: it may have begun.
pub(crate) async fn begin(
    restate: &str,
    spec: &StoredSpec,
    store: &dyn Store,
    run_id: &RunId,
) -> Result<(), CliError> {
    let Err(error) = start(restate, spec, run_id).await else { return Ok(()) };
    if error.nothing_happened() {
        store.delete_runs(std::slice::from_ref(run_id)).await.map_err(local::broken)?;
        return Err(refused(error));
    }
    let id = local::short(run_id);
    Err(CliError::failed("nobody knows whether the cluster has taken the run")
        .with_source(error)
        .with_hint(format!("`moothall resume {id}` gives it to the cluster, if it is not there")))
}

/// Gives a run to the workers of a cluster, unless they have it: to start it twice is to start it
/// once. A question that nobody answered is asked again.
pub(crate) async fn start(
    restate: &str,
    spec: &StoredSpec,
    run_id: &RunId,
) -> Result<(), ClusterError> {
    let (cluster, service) = (Cluster::new(restate)?, service_of(spec));
    let mut tries = 1;
    loop {
        match cluster.start(service, run_id).await {
            Err(error) if !error.nothing_happened() && tries < START_TRIES => {
                tries += 1;
                tokio::time::sleep(START_AGAIN).await;
            }
            started => return started,
        }
    }
}

/// Lets a run go on that stands still. One that no worker has, because whoever made it died before
/// it was given to the cluster, begins; one that goes on is left alone.
pub(crate) async fn let_go_on(
    restate: &str,
    store: &dyn Store,
    run_id: &RunId,
    budget: Budget,
) -> Result<(), CliError> {
    let row = store.run(run_id).await.map_err(local::broken)?;
    let spec = row.ok_or_else(|| local::no_such_run(run_id.as_str()))?.spec;
    start(restate, &spec, run_id).await.map_err(refused)?;
    // Read only now: what begins may come to a pause, or to its end.
    let record = RunRecord::read(store, run_id).await.map_err(local::broken)?;
    if record.row.state != RunState::Paused {
        return Ok(());
    }
    let cluster = Cluster::new(restate).map_err(refused)?;
    cluster.go_on(service_of(&spec), run_id, pauses(&record.events), budget).await.map_err(refused)
}

/// Asks the workers of a run to end it. One that stands still must go on to hear of it, and one that
/// no worker has must begin.
pub(crate) async fn cancel(
    restate: &str,
    store: &dyn Store,
    run_id: &RunId,
) -> Result<(), CliError> {
    match store.ask(run_id, Wish::Cancel).await {
        Ok(()) => {}
        Err(StoreError::RunEnded { .. }) => return Ok(()),
        Err(error) => return Err(local::broken(error)),
    }
    // Where it stands is read after it was asked: a run that comes to a pause looks for this wish
    // after it has said that it stands still.
    let_go_on(restate, store, run_id, Budget::default()).await.map_err(|error| {
        let id = local::short(run_id);
        error.with_hint(format!(
            "the wish stays: it ends as soon as the cluster is there; without one, delete it: \
             `moothall runs rm {id} --force`"
        ))
    })
}

/// How often a run has paused.
fn pauses(events: &[StoredEvent]) -> u32 {
    let number = |stored: &StoredEvent| match stored.event.body {
        RunEventBody::RunPaused { number, .. } => number,
        _ => 0,
    };
    events.iter().map(number).max().unwrap_or_default()
}

/// What a person is told who does not want to watch any more.
pub(crate) fn unwatched(run_id: &RunId) -> CliError {
    let id = local::short(run_id);
    let words = format!("nobody watches run {id} from here any more; it goes on");
    CliError::new(Exit::Cancelled, words).with_hint(format!(
        "follow it: `moothall events {id} --follow`; end it: `moothall cancel {id}`"
    ))
}

/// Hears what happens after `before`, until the run ends or stands still.
pub(crate) async fn until_it_stops(
    store: &dyn Store,
    run_id: &RunId,
    before: &[StoredEvent],
    mut heard: impl FnMut(&StoredEvent),
) -> Result<Ended, CliError> {
    let mut seen = before.last().map_or(0, |stored| stored.seq);
    let pauses = pauses(before);
    loop {
        let events = store.events(run_id, seen, PAGE).await.map_err(local::broken)?;
        for stored in &events {
            seen = stored.seq;
            heard(stored);
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
        (None, RunEventBody::RunFailed { detail, .. }) => {
            Err(CliError::failed(format!("the run cannot go on: {detail}")))
        }
        (None, _) => Err(local::no_such_run(run_id.as_str())),
    }
}

fn why(reason: PauseReason, detail: &str) -> Pause {
    match reason {
        PauseReason::Budget => Pause::Budget(ModelFailure::new(FailureKind::OverBudget, detail)),
        PauseReason::Question => Pause::Question(detail.to_owned()),
        PauseReason::Failure => match detail.split_once(": ").map(|(it, why)| (it.parse(), why)) {
            Some((Ok(model), why)) => {
                Pause::Failure(model, ModelFailure::new(FailureKind::Auth, why))
            }
            _ => Pause::Person,
        },
        PauseReason::Person => Pause::Person,
    }
}
