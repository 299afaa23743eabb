//! Driving a consultation while somebody watches and may interrupt.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::RunId;
use moothall_core::consult::{Consult, Review};
use moothall_engine::{Driver, Ended, EngineError, GatherPerformer, ModelPerformer, RunRecord};
use moothall_models::Ledger;
use moothall_store::{Store, Wish};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::kept::Kept;
use super::prepare::Ready;
use super::reading::{titles, view};
use super::screen::{SharedScreen, TICK, shown};
use crate::error::CliError;
use crate::local::{self, Local};
use crate::pace::Pace;

/// How long answers that are under way are waited for after Ctrl-C. They are paid for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Calls at once for each debate: a round asks three decision makers together.
const CALLS_OF_A_DEBATE: usize = 5;

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
    ready: &Ready,
    local: &Local,
    run_id: &RunId,
    kept: &Kept,
    ledger: Ledger,
    person_says: Option<Review>,
    screen: &SharedScreen,
) -> anyhow::Result<Left> {
    let store = &local.store;
    let mut workflow = workflow(kept)?;
    let seen = Arc::clone(screen);
    let driver = driver(ready, store, run_id, kept, ledger, Pace::NONE)
        .person_says(person_says)
        .on_event(move |stored| shown(&seen).event(stored));
    // Boxed: hundreds of calls under way are large.
    let driving = Box::pin(driver.drive(&mut workflow));
    let left = watched(store, run_id, kept, screen, driving).await;
    // Where it was quick, nobody looked for what moves are called.
    if shown(screen).board.has_unnamed_moves() {
        name_moves(&**store, run_id, kept, screen).await;
    }
    shown(screen).close();
    left
}

/// The workflow of a consultation, or why there is none.
pub(super) fn workflow(kept: &Kept) -> Result<Consult, CliError> {
    Consult::new(kept.consult.clone()).map_err(|error| CliError::usage(error.to_string()))
}

/// A driver for it that nobody hears and nobody answers yet.
pub(super) fn driver(
    ready: &Ready,
    store: &Arc<dyn Store>,
    run_id: &RunId,
    kept: &Kept,
    ledger: Ledger,
    pace: Pace,
) -> Driver {
    let models = Arc::new(ModelPerformer::new(Arc::clone(&ready.gateway), Arc::new(ledger)));
    let performer = pace.slow(Arc::new(GatherPerformer::new(models, ready.filings.clone())));
    let parallel = kept.settings.parallel_moves.unwrap_or(15).max(1) as usize;
    Driver::new(Arc::clone(store), performer, run_id.clone())
        .at_once(parallel.saturating_mul(CALLS_OF_A_DEBATE))
        .parallel_children(parallel)
        .walls(ready.walls.clone())
}

/// Whatever else is asked of the store is asked in a task of its own: the driver may hold the
/// store's only writer while it is not polled.
async fn watched(
    store: &Arc<dyn Store>,
    run_id: &RunId,
    kept: &Kept,
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
            ended = &mut driving => return Ok(Left::Ended(ended.map_err(broken)?)),
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
                    let (kept, screen) = (kept.clone(), Arc::clone(screen));
                    others.spawn(async move { name_moves(&*store, &run_id, &kept, &screen).await });
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
    kept: &Kept,
    screen: &SharedScreen,
) {
    let Ok(record) = RunRecord::read(store, run_id).await else { return };
    if let Ok(view) = view(kept, &record) {
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

pub(super) fn broken(error: EngineError) -> CliError {
    match error {
        EngineError::Store(error) => local::broken(error),
        EngineError::JournalMismatch { .. } => {
            CliError::failed("the run cannot go on").with_source(error).with_hint(
                "another version of moothall may have begun it; `moothall show` still shows it",
            )
        }
        error => CliError::failed("the run cannot be driven").with_source(error),
    }
}
