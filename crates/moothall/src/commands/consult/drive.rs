//! Executes a consultation while showing its progress and handling Ctrl-C.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::consult::MoveReview;
use moothall_core::{ConsultSpec, RunId};
use moothall_engine::{EngineError, RunExit, RunRecord};
use moothall_models::RunLedger;
use moothall_store::{ControlRequest, Store, StoredEvent};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::screen::{SharedScreen, TICK, shown};
use super::stored_consultation::{titles, view};
use crate::commands::{self, InterruptibleResult};
use crate::demo_delay::DemoDelay;
use crate::error::CliError;
use crate::launch::{PreparedRun, RunParts, cluster, engine_failure};
use crate::run_store::RunStore;

/// How long calls in progress may take to finish after Ctrl-C. They are paid for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Interval for looking up the titles of moves.
const LOOK_FOR_NAMES: Duration = Duration::from_secs(2);

const PAUSING: &str = "pausing after the calls in progress · Ctrl-C again exits immediately";

/// Why a run is no longer executed by this process.
#[derive(Debug)]
pub(crate) enum DriveResult {
    Ended(RunExit),
    /// The user did not wait; the run can be resumed.
    Interrupted,
}

/// Executes a run until it stops. The caller holds its lock. Ctrl-C pauses the run.
pub(crate) async fn drive(
    prepared: &PreparedRun,
    local: &RunStore,
    run_id: &RunId,
    spec: &ConsultSpec,
    ledger: RunLedger,
    review: Option<MoveReview>,
    screen: &SharedScreen,
) -> anyhow::Result<DriveResult> {
    let store = &local.store;
    let RunParts { mut workflow, driver, .. } =
        prepared.parts(store, run_id, ledger, DemoDelay::NONE).await?;
    let seen = Arc::clone(screen);
    let driver = driver.person_says(review).on_event(move |stored| shown(&seen).event(stored));
    // Boxed because the future is large: it holds hundreds of calls in progress.
    let driving = Box::pin(driver.drive(&mut *workflow));
    let left = watched(store, run_id, spec, screen, driving).await;
    // A fast run ends before the titles were looked up.
    if shown(screen).board.has_unnamed_moves() {
        name_moves(&**store, run_id, spec, screen).await;
    }
    shown(screen).close();
    left
}

/// Follows a run that workers execute until it stops. The events in `before` are already on the
/// screen.
pub(crate) async fn follow(
    store: &dyn Store,
    run_id: &RunId,
    before: &[StoredEvent],
    spec: &ConsultSpec,
    screen: &SharedScreen,
) -> anyhow::Result<DriveResult> {
    let heard = |stored: &StoredEvent| shown(screen).event(stored);
    let following = Box::pin(cluster::until_it_stops(store, run_id, before, heard));
    let followed = commands::watched(following, TICK, || shown(screen).tick()).await;
    if shown(screen).board.has_unnamed_moves() {
        name_moves(store, run_id, spec, screen).await;
    }
    shown(screen).close();
    match followed {
        InterruptibleResult::Done(ended) => Ok(DriveResult::Ended(ended?)),
        InterruptibleResult::Cancelled => Err(cluster::unwatched(run_id).into()),
    }
}

/// Other store calls run in separate tasks: the driver may hold the store's only writer while it is
/// not polled.
async fn watched(
    store: &Arc<dyn Store>,
    run_id: &RunId,
    spec: &ConsultSpec,
    screen: &SharedScreen,
    mut driving: impl Future<Output = Result<RunExit, EngineError>> + Unpin,
) -> anyhow::Result<DriveResult> {
    let mut stop = StopSignals::listen()?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut give_up: Option<Instant> = None;
    let mut names_at = Instant::now();
    let mut others = JoinSet::new();
    loop {
        tokio::select! {
            ended = &mut driving => return Ok(DriveResult::Ended(ended.map_err(engine_failure)?)),
            () = stop.asked() => {
                if give_up.is_some() {
                    return Ok(DriveResult::Interrupted);
                }
                let (store, run_id) = (Arc::clone(store), run_id.clone());
                // An error means that the run has just ended.
                others.spawn(async move { drop(store.ask(&run_id, ControlRequest::Pause).await) });
                give_up = Some(Instant::now() + PATIENCE);
                shown(screen).notice(PAUSING);
            }
            now = tick.tick() => {
                if give_up.is_some_and(|at| now >= at) {
                    return Ok(DriveResult::Interrupted);
                }
                if now >= names_at && shown(screen).board.wants_names() {
                    names_at = now + LOOK_FOR_NAMES;
                    let (store, run_id) = (Arc::clone(store), run_id.clone());
                    let (spec, screen) = (spec.clone(), Arc::clone(screen));
                    others.spawn(async move { name_moves(&*store, &run_id, &spec, &screen).await });
                }
                shown(screen).tick();
            }
        }
    }
}

/// Reads the titles of moves from the journal, since events do not contain them. Errors only leave
/// titles out of the display.
pub(crate) async fn name_moves(
    store: &dyn Store,
    run_id: &RunId,
    spec: &ConsultSpec,
    screen: &SharedScreen,
) {
    let Ok(record) = RunRecord::read(store, run_id).await else { return };
    if let Ok(view) = view(spec, &record) {
        shown(screen).board.name(titles(&view));
    }
}

/// Ctrl-C or SIGTERM.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CliError::failed("cannot listen for signals").with_source(error))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
