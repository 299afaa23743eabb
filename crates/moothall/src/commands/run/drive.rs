//! Driving a run, new or not, while somebody watches and may interrupt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::{Conclusion, Outcome, RunEventBody, RunId, RunSpec, Verdict};
use moothall_engine::{Ended, Performer as _, cancel};
use moothall_models::Ledger;
use moothall_store::StoredEvent;

use super::view::View;
use crate::commands::{self, Interruptible};
use crate::launch::{PreparedRun, RunParts};
use crate::local::Local;
use crate::pace::Pace;

/// How often a waiting line is drawn again.
const TICK: Duration = Duration::from_millis(250);

/// The view, shared with the driver.
pub(in crate::commands) type SharedView = Arc<Mutex<View>>;

/// Does some work while the view shows how long it takes, until it is done or the person presses
/// Ctrl-C.
pub(in crate::commands) async fn watched<T>(
    view: &SharedView,
    work: impl Future<Output = T>,
) -> Interruptible<T> {
    // Boxed: a call or a sandbox under way is large.
    let done = commands::watched(Box::pin(work), TICK, || shown(view).tick()).await;
    shown(view).clear();
    done
}

/// The view, whoever else may have panicked while looking.
pub(in crate::commands) fn shown(view: &SharedView) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drives a run to where it stops. The caller holds its lock. Ctrl-C cancels it.
pub(in crate::commands) async fn drive(
    prepared: &PreparedRun,
    local: &Local,
    run_id: &RunId,
    ledger: Ledger,
    view: &SharedView,
) -> anyhow::Result<Ended> {
    let store = &local.store;
    let RunParts { mut workflow, driver, models } =
        prepared.parts(store, run_id, ledger, Pace::NONE).await?;
    let (seen, run, spec) = (Arc::clone(view), run_id.clone(), prepared.spec().clone());
    let driver = driver.on_event(move |stored| {
        log(stored, &spec);
        shown(&seen).event(&run, stored);
    });
    let ended = match watched(view, driver.drive(&mut *workflow)).await {
        Interruptible::Done(ended) => ended?,
        // The driver is gone, and with it everything under way.
        Interruptible::Cancelled => {
            for stored in cancel(&**store, run_id, models.spent()).await? {
                shown(view).event(run_id, &stored);
            }
            Ended::Cancelled
        }
    };
    if let (Ended::Done(outcome), RunSpec::Program(_)) = (&ended, prepared.spec()) {
        let success = outcome.verdict == Verdict::Pass;
        let attempts = attempts(outcome);
        tracing::info!(target: "moothall::run", success, attempts, "agent workflow completed");
    }
    Ok(ended)
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

/// Logs what operators read of a program run. Of the task only its size: it may hold anything.
pub(in crate::commands) fn log(stored: &StoredEvent, spec: &RunSpec) {
    let RunSpec::Program(spec) = spec else { return };
    match &stored.event.body {
        RunEventBody::RunStarted { .. } => {
            let task_bytes = spec.input.task.len();
            tracing::info!(target: "moothall::run", task_bytes, "agent workflow started");
        }
        RunEventBody::CodeGenerated { code_lines, confidence_permille, .. } => {
            let confidence = confidence_permille.map(|permille| f64::from(permille) / 1000.0);
            let provider = spec.input.model.provider();
            tracing::info!(target: "moothall::run", code_lines, confidence, provider, "code generated");
        }
        _ => {}
    }
}
