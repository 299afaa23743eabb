//! Executes a run that Ctrl-C pauses, and explains why it stopped.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::RunId;
use moothall_engine::{EngineError, RunExit, RunPause};
use moothall_store::{ControlRequest, Store};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{CLEANUP_TIMEOUT, failure};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::launch::{PreparedRun, engine_failure};
use crate::notify::RunNotification;
use crate::run_store;

/// How long calls in progress may take to finish after Ctrl-C. They are paid for.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const PAUSING_NOTICE: &str =
    "pausing after the calls in progress · Ctrl-C again exits immediately";

/// Why a run is no longer executed by this process.
#[derive(Debug)]
pub(crate) enum DriveResult {
    Ended(RunExit),
    /// The user did not wait; the run can be resumed.
    Interrupted,
}

impl DriveResult {
    /// The notification to send, if any.
    pub(crate) fn notification(result: &anyhow::Result<Self>) -> Option<RunNotification> {
        match result {
            Ok(Self::Ended(ended)) => RunNotification::of(ended),
            Ok(Self::Interrupted) => None,
            Err(_) => Some(RunNotification::Failed),
        }
    }

    /// Removes the sandboxes of the run. After an interruption, the wait is limited.
    pub(crate) async fn shut_down(result: &anyhow::Result<Self>, prepared: &PreparedRun) {
        match result {
            Ok(Self::Ended(_)) => prepared.shut_down().await,
            Ok(Self::Interrupted) | Err(_) => {
                let _ = tokio::time::timeout(CLEANUP_TIMEOUT, prepared.shut_down()).await;
            }
        }
    }
}

/// What happens while a run is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriveMoment {
    /// The display is redrawn.
    Tick(Instant),
    /// The user pressed Ctrl-C for the first time.
    Pausing,
}

/// Executes a run until it stops. The first Ctrl-C or SIGTERM pauses the run after the calls in
/// progress; the second stops waiting for them.
///
/// Other store calls run in separate tasks: the driver may hold the store's only writer while it is
/// not polled.
pub(crate) async fn drive_pausable(
    store: &Arc<dyn Store>,
    run_id: &RunId,
    mut driving: impl Future<Output = Result<RunExit, EngineError>> + Unpin,
    tick: Duration,
    mut on_moment: impl FnMut(DriveMoment),
) -> anyhow::Result<DriveResult> {
    let mut stop = StopSignals::listen()?;
    let mut tick = tokio::time::interval(tick);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut deadline: Option<Instant> = None;
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
                on_moment(DriveMoment::Pausing);
            }
            now = tick.tick() => {
                if deadline.is_some_and(|at| now >= at) {
                    return Ok(DriveResult::Interrupted);
                }
                on_moment(DriveMoment::Tick(now));
            }
        }
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

/// The message for a run that is paused, with the command that continues it.
pub(crate) fn pause_message(
    context: &CommandContext,
    run_id: &RunId,
    pause: &RunPause,
) -> CliError {
    let id = run_store::short_id(run_id);
    match pause {
        RunPause::Budget(found) => {
            let flag = match found.detail.contains("tokens") {
                true => "--budget-tokens N",
                false => "--budget USD",
            };
            CliError::new(CliExit::BudgetStopped, format!("run {id} is paused ({found})"))
                .with_hint(format!("raise the limit with `moothall resume {id} {flag}`"))
        }
        RunPause::Failure(model, found) => failure::of_pause(context, model, found, run_id),
        RunPause::Question(asked) => {
            CliError::notice(CliExit::NeedsPerson, format!("run {id} is paused: {asked}"))
                .with_hint(resume_hint(id))
        }
        RunPause::Person => CliError::notice(
            CliExit::Cancelled,
            format!("Paused. Continue with `moothall resume {id}`."),
        ),
    }
}

/// The message for a run whose calls in progress were dropped.
pub(crate) fn interruption_message(run_id: &RunId) -> CliError {
    let id = run_store::short_id(run_id);
    let message = format!("run {id} was interrupted; unfinished calls will be repeated");
    CliError::notice(CliExit::Cancelled, message).with_hint(resume_hint(id))
}

/// The message for a run that a user ended.
pub(crate) fn cancellation_message(run_id: &RunId) -> CliError {
    let id = run_store::short_id(run_id);
    CliError::notice(CliExit::Cancelled, format!("run {id} was cancelled"))
}

fn resume_hint(id: &str) -> String {
    format!("continue it with `moothall resume {id}`")
}
