//! Executes a new or resumed run while showing its progress and handling Ctrl-C.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::{Conclusion, Outcome, RunEventBody, RunId, RunSpec, RunVerdict};
use moothall_engine::RunExit;
use moothall_models::RunLedger;
use moothall_store::StoredEvent;

use super::view::RunProgressView;
use crate::commands::pausable_run::{DriveMoment, DriveResult, PAUSING_NOTICE, drive_pausable};
use crate::commands::{self, InterruptibleResult};
use crate::demo_delay::DemoDelay;
use crate::launch::{PreparedRun, RunParts};
use crate::run_store::RunStore;

/// Redraw interval of the waiting line.
const TICK: Duration = Duration::from_millis(250);

/// Shared with the driver.
pub(crate) type SharedView = Arc<Mutex<RunProgressView>>;

/// Shows the elapsed time while `work` runs, until it is done or the user presses Ctrl-C.
pub(crate) async fn with_progress<T>(
    view: &SharedView,
    work: impl Future<Output = T>,
) -> InterruptibleResult<T> {
    // Boxed because the future of a call or a sandbox is large.
    let done =
        commands::interruptible_with_tick(Box::pin(work), TICK, || lock_view(view).tick()).await;
    lock_view(view).clear();
    done
}

/// Locks the view, also after a panic in another holder.
pub(crate) fn lock_view(view: &SharedView) -> MutexGuard<'_, RunProgressView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Executes a run until it stops. The caller holds its lock. Ctrl-C pauses the run.
pub(crate) async fn drive(
    prepared: &PreparedRun,
    local: &RunStore,
    run_id: &RunId,
    ledger: RunLedger,
    view: &SharedView,
) -> anyhow::Result<DriveResult> {
    let store = &local.store;
    let received = lock_view(view).received();
    let RunParts { mut workflow, driver } =
        prepared.parts(store, run_id, ledger, DemoDelay::NONE, received).await?;
    let (event_view, run, spec) = (Arc::clone(view), run_id.clone(), prepared.spec().clone());
    let driver = driver.on_event(move |stored| {
        log(stored, &spec);
        lock_view(&event_view).event(&run, stored);
    });
    // Boxed because the future of a call or a sandbox is large.
    let driving = Box::pin(driver.drive(&mut *workflow));
    let result = drive_pausable(store, run_id, driving, TICK, |moment| match moment {
        DriveMoment::Pausing => lock_view(view).notice(PAUSING_NOTICE),
        DriveMoment::Tick(_) => lock_view(view).tick(),
    })
    .await;
    lock_view(view).clear();
    if let (Ok(DriveResult::Ended(RunExit::Done(outcome))), RunSpec::Program(_)) =
        (&result, prepared.spec())
    {
        let success = outcome.verdict == RunVerdict::Pass;
        let attempts = attempts(outcome);
        tracing::info!(target: "moothall::run", success, attempts, "agent workflow completed");
    }
    result
}

fn attempts(outcome: &Outcome) -> u32 {
    match &outcome.conclusion {
        Conclusion::Ran(attempted)
        | Conclusion::Passed(attempted)
        | Conclusion::Questioned(attempted)
        | Conclusion::NotPassed(attempted) => attempted.attempts,
        _ => 0,
    }
}

/// Logs a program run for operators. Only the size of the task is logged, because its text may be
/// confidential.
pub(crate) fn log(stored: &StoredEvent, spec: &RunSpec) {
    let RunSpec::Program(spec) = spec else { return };
    match &stored.event.body {
        RunEventBody::RunStarted { .. } => {
            let task_bytes = spec.input.task.len();
            tracing::info!(target: "moothall::run", task_bytes, "agent workflow started");
        }
        RunEventBody::CodeGenerated { code_lines, confidence_permille, .. } => {
            let confidence = confidence_permille.map(|permille| f64::from(permille) / 1000.0);
            let provider = spec.input.model.first().provider();
            tracing::info!(target: "moothall::run", code_lines, confidence, provider, "code generated");
        }
        _ => {}
    }
}
