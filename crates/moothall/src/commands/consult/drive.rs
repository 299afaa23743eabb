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

use super::screen::{SharedScreen, TICK, lock_screen};
use super::stored_consultation::{titles, view};
use crate::commands::{self, InterruptibleResult};
use crate::demo_delay::DemoDelay;
use crate::error::CliError;
use crate::launch::{PreparedRun, RunParts, cluster, engine_failure};
use crate::run_store::RunStore;

/// How long calls in progress may take to finish after Ctrl-C. They are paid for.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval for looking up the titles of moves.
const TITLE_POLL_INTERVAL: Duration = Duration::from_secs(2);

const PAUSING_NOTICE: &str = "pausing after the calls in progress · Ctrl-C again exits immediately";

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
    let event_screen = Arc::clone(screen);
    let driver = driver
        .person_review(review)
        .on_event(move |stored| lock_screen(&event_screen).event(stored));
    // Boxed because the future is large: it holds hundreds of calls in progress.
    let driving = Box::pin(driver.drive(&mut *workflow));
    let left = drive_with_screen(store, run_id, spec, screen, driving).await;
    // A fast run ends before the titles were looked up.
    if lock_screen(screen).board.has_unnamed_moves() {
        load_titles(&**store, run_id, spec, screen).await;
    }
    lock_screen(screen).close();
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
    let on_event = |stored: &StoredEvent| lock_screen(screen).event(stored);
    let following = Box::pin(cluster::follow_until_stopped(store, run_id, before, on_event));
    let followed =
        commands::interruptible_with_tick(following, TICK, || lock_screen(screen).tick()).await;
    if lock_screen(screen).board.has_unnamed_moves() {
        load_titles(store, run_id, spec, screen).await;
    }
    lock_screen(screen).close();
    match followed {
        InterruptibleResult::Done(ended) => Ok(DriveResult::Ended(ended?)),
        InterruptibleResult::Cancelled => Err(cluster::detached_error(run_id).into()),
    }
}

/// Other store calls run in separate tasks: the driver may hold the store's only writer while it is
/// not polled.
async fn drive_with_screen(
    store: &Arc<dyn Store>,
    run_id: &RunId,
    spec: &ConsultSpec,
    screen: &SharedScreen,
    mut driving: impl Future<Output = Result<RunExit, EngineError>> + Unpin,
) -> anyhow::Result<DriveResult> {
    let mut stop = StopSignals::listen()?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut deadline: Option<Instant> = None;
    let mut next_title_lookup = Instant::now();
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            ended = &mut driving => return Ok(DriveResult::Ended(ended.map_err(engine_failure)?)),
            () = stop.recv() => {
                if deadline.is_some() {
                    return Ok(DriveResult::Interrupted);
                }
                let (store, run_id) = (Arc::clone(store), run_id.clone());
                // An error means that the run has just ended.
                tasks.spawn(async move { drop(store.request_control(&run_id, ControlRequest::Pause).await) });
                deadline = Some(Instant::now() + PAUSE_TIMEOUT);
                lock_screen(screen).notice(PAUSING_NOTICE);
            }
            now = tick.tick() => {
                if deadline.is_some_and(|at| now >= at) {
                    return Ok(DriveResult::Interrupted);
                }
                if now >= next_title_lookup && lock_screen(screen).board.needs_titles() {
                    next_title_lookup = now + TITLE_POLL_INTERVAL;
                    let (store, run_id) = (Arc::clone(store), run_id.clone());
                    let (spec, screen) = (spec.clone(), Arc::clone(screen));
                    tasks.spawn(async move { load_titles(&*store, &run_id, &spec, &screen).await });
                }
                lock_screen(screen).tick();
            }
        }
    }
}

/// Reads the titles of moves from the journal, since events do not contain them. Errors only leave
/// titles out of the display.
pub(crate) async fn load_titles(
    store: &dyn Store,
    run_id: &RunId,
    spec: &ConsultSpec,
    screen: &SharedScreen,
) {
    let Ok(record) = RunRecord::read(store, run_id).await else { return };
    if let Ok(view) = view(spec, &record) {
        lock_screen(screen).board.name(titles(&view));
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

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
