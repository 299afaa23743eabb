//! Executes a consultation while showing its progress and handling Ctrl-C.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::RunId;
use moothall_core::consult::MoveReview;
use moothall_engine::{Consultation, EngineError, RunExit, RunRecord};
use moothall_models::RunLedger;
use moothall_store::{Store, StoredEvent};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::screen::{SharedScreen, TICK, lock_screen};
use crate::commands::pausable_run::{DriveMoment, DriveResult, PAUSING_NOTICE, drive_pausable};
use crate::commands::{self, InterruptibleResult};
use crate::demo_delay::DemoDelay;
use crate::launch::{PreparedRun, RunParts, cluster};
use crate::run_store::RunStore;

/// Interval for looking up the titles of moves.
const TITLE_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Executes a run until it stops. The caller holds its lock. Ctrl-C pauses the run.
pub(crate) async fn drive(
    prepared: &PreparedRun,
    local: &RunStore,
    run_id: &RunId,
    (ledger, delay): (RunLedger, DemoDelay),
    review: Option<MoveReview>,
    screen: &SharedScreen,
) -> anyhow::Result<DriveResult> {
    let store = &local.store;
    let received = lock_screen(screen).received();
    let RunParts { mut workflow, driver } =
        prepared.parts(store, run_id, ledger, delay, received).await?;
    let event_screen = Arc::clone(screen);
    let driver = driver
        .person_review(review)
        .on_event(move |stored| lock_screen(&event_screen).event(stored));
    // Boxed because the future is large: it holds hundreds of calls in progress.
    let driving = Box::pin(driver.drive(&mut *workflow));
    let left = drive_with_screen(store, run_id, screen, driving).await;
    // A fast run ends before the titles were looked up.
    if lock_screen(screen).board.has_unnamed_moves() {
        load_titles(&**store, run_id, screen).await;
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
    screen: &SharedScreen,
) -> anyhow::Result<DriveResult> {
    let on_event = |stored: &StoredEvent| lock_screen(screen).event(stored);
    let following = Box::pin(cluster::follow_until_stopped(store, run_id, before, on_event));
    let followed =
        commands::interruptible_with_tick(following, TICK, || lock_screen(screen).tick()).await;
    if lock_screen(screen).board.has_unnamed_moves() {
        load_titles(store, run_id, screen).await;
    }
    lock_screen(screen).close();
    match followed {
        InterruptibleResult::Done(ended) => Ok(DriveResult::Ended(ended?)),
        InterruptibleResult::Cancelled => Err(cluster::detached_error(run_id).into()),
    }
}

async fn drive_with_screen(
    store: &Arc<dyn Store>,
    run_id: &RunId,
    screen: &SharedScreen,
    driving: impl Future<Output = Result<RunExit, EngineError>> + Unpin,
) -> anyhow::Result<DriveResult> {
    let mut next_title_lookup = Instant::now();
    let mut tasks = JoinSet::new();
    drive_pausable(store, run_id, driving, TICK, |moment| match moment {
        DriveMoment::Pausing => lock_screen(screen).notice(PAUSING_NOTICE),
        DriveMoment::Tick(now) => {
            if now >= next_title_lookup && lock_screen(screen).board.needs_titles() {
                next_title_lookup = now + TITLE_POLL_INTERVAL;
                let (store, run_id, screen) =
                    (Arc::clone(store), run_id.clone(), Arc::clone(screen));
                tasks.spawn(async move { load_titles(&*store, &run_id, &screen).await });
            }
            lock_screen(screen).tick();
        }
    })
    .await
}

/// Reads the titles of moves from the journal, since events do not contain them. Errors only leave
/// titles out of the display.
pub(crate) async fn load_titles(store: &dyn Store, run_id: &RunId, screen: &SharedScreen) {
    let Ok(record) = RunRecord::read(store, run_id).await else { return };
    if let Some(Ok(moves)) = Consultation::proposed_moves(&record) {
        let titles = moves.into_iter().map(|one| (one.move_id, one.proposal.title));
        lock_screen(screen).board.name(titles);
    }
}
