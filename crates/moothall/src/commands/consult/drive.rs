//! Driving a consultation while somebody watches and may interrupt.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::consult::Review;
use moothall_core::{ConsultSpec, RunId};
use moothall_engine::{Ended, EngineError, RunRecord};
use moothall_models::Ledger;
use moothall_store::{Store, StoredEvent, Wish};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::reading::{titles, view};
use super::screen::{SharedScreen, TICK, shown};
use crate::commands::{self, Interruptible};
use crate::error::CliError;
use crate::launch::{PreparedRun, RunParts, cluster, engine_failure};
use crate::local::Local;
use crate::pace::Pace;

/// How long answers that are under way are waited for after Ctrl-C. They are paid for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks for what moves are called.
const LOOK_FOR_NAMES: Duration = Duration::from_secs(2);

const PAUSING: &str = "pausing: answers under way are waited for · Ctrl-C again leaves at once";

/// Where a run stands when nobody drives it any more.
#[derive(Debug)]
pub(super) enum Left {
    /// The driver let go.
    Ended(Ended),
    /// The person did not wait; the run can be resumed.
    Interrupted,
}

/// Drives a run to where it stops. The caller holds its lock. Ctrl-C pauses it.
pub(super) async fn drive(
    prepared: &PreparedRun,
    local: &Local,
    run_id: &RunId,
    spec: &ConsultSpec,
    ledger: Ledger,
    review: Option<Review>,
    screen: &SharedScreen,
) -> anyhow::Result<Left> {
    let store = &local.store;
    let RunParts { mut workflow, driver, .. } =
        prepared.parts(store, run_id, ledger, Pace::NONE).await?;
    let seen = Arc::clone(screen);
    let driver = driver.person_says(review).on_event(move |stored| shown(&seen).event(stored));
    // Boxed: hundreds of calls under way are large.
    let driving = Box::pin(driver.drive(&mut *workflow));
    let left = watched(store, run_id, spec, screen, driving).await;
    // A quick run ends before anyone has looked up the names of its moves.
    if shown(screen).board.has_unnamed_moves() {
        name_moves(&**store, run_id, spec, screen).await;
    }
    shown(screen).close();
    left
}

/// Follows a run that workers drive to where it stops. The events `before` were shown already.
pub(super) async fn follow(
    store: &dyn Store,
    run_id: &RunId,
    before: &[StoredEvent],
    spec: &ConsultSpec,
    screen: &SharedScreen,
) -> anyhow::Result<Left> {
    let heard = |stored: &StoredEvent| shown(screen).event(stored);
    let following = Box::pin(cluster::until_it_stops(store, run_id, before, heard));
    let followed = commands::watched(following, TICK, || shown(screen).tick()).await;
    if shown(screen).board.has_unnamed_moves() {
        name_moves(store, run_id, spec, screen).await;
    }
    shown(screen).close();
    match followed {
        Interruptible::Done(ended) => Ok(Left::Ended(ended?)),
        Interruptible::Cancelled => Err(cluster::unwatched(run_id).into()),
    }
}

/// Whatever else is asked of the store is asked in a task of its own: the driver may hold the
/// store's only writer while it is not polled.
async fn watched(
    store: &Arc<dyn Store>,
    run_id: &RunId,
    spec: &ConsultSpec,
    screen: &SharedScreen,
    mut driving: impl Future<Output = Result<Ended, EngineError>> + Unpin,
) -> anyhow::Result<Left> {
    let mut stop = Stop::listen()?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut give_up: Option<Instant> = None;
    let mut names_at = Instant::now();
    let mut others = JoinSet::new();
    loop {
        tokio::select! {
            ended = &mut driving => return Ok(Left::Ended(ended.map_err(engine_failure)?)),
            () = stop.asked() => {
                if give_up.is_some() {
                    return Ok(Left::Interrupted);
                }
                let (store, run_id) = (Arc::clone(store), run_id.clone());
                // Where it has just ended there is nothing to pause.
                others.spawn(async move { drop(store.ask(&run_id, Wish::Pause).await) });
                give_up = Some(Instant::now() + PATIENCE);
                shown(screen).notice(PAUSING);
            }
            now = tick.tick() => {
                if give_up.is_some_and(|at| now >= at) {
                    return Ok(Left::Interrupted);
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

/// Events do not say what moves are called; the answers do. What cannot be read is only not shown.
pub(super) async fn name_moves(
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

/// Ctrl-C, or a polite request of the system to end.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                CliError::failed("signals cannot be listened to").with_source(error)
            })
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
