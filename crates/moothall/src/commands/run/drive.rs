//! Driving a run, new or not, while somebody watches and may interrupt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::model::ModelName;
use moothall_core::reflexion::{Expectation, Reflexion, ReflexionInput};
use moothall_core::sandbox::Limits;
use moothall_core::structured::OutputCheck;
use moothall_core::{Conclusion, Outcome, RunEventBody, RunId, Verdict};
use moothall_engine::{
    Driver, Ended, ModelPerformer, Performer as _, SandboxExecutor, SandboxPerformer, cancel,
};
use moothall_models::{Gateway, Ledger, SchemaCheck};
use moothall_sandbox::Spec;
use moothall_store::{Store, StoredEvent};
use serde_json::Value;

use super::kept::Settings;
use super::view::View;
use crate::commands::{self, Interruptible};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::isolation;
use crate::local::{self, Local};
use crate::pace::Pace;

/// How often a waiting line is drawn again.
const TICK: Duration = Duration::from_millis(250);

/// The view, shared with the driver.
pub(in crate::commands) type SharedView = Arc<Mutex<View>>;

/// What a run needs of this machine, found out before anybody is asked anything.
pub(super) struct Ready {
    pub(super) gateway: Arc<Gateway>,
    pub(super) executor: Arc<SandboxExecutor>,
}

impl Ready {
    /// Finds a sandbox and a way to the model. Both may be missing, and then nothing is spent.
    pub(super) async fn find(
        context: &Context,
        settings: &Settings,
        model: &ModelName,
        image: &str,
        limits: Limits,
    ) -> Result<Self, CliError> {
        let gateway = Arc::new(context.gateway(model, settings.recording()?)?);
        let policy =
            isolation::policy(&context.loaded, settings.isolation, settings.allow_shared_kernel)?;
        let idle = context.loaded.resolved.config.isolation.pool;
        let sandboxes = isolation::sandboxes(&context.loaded, &policy, image, idle).await?;
        // It starts while the model writes.
        sandboxes.expect(&Spec { image: image.to_owned(), limits });
        Ok(Self { gateway, executor: Arc::new(SandboxExecutor::new(sandboxes)) })
    }

    /// Waits until nothing is left of any sandbox.
    pub(super) async fn shut_down(&self) {
        self.executor.shut_down().await;
    }
}

/// The workflow of an input, or why there is none.
pub(super) fn workflow(input: ReflexionInput) -> Result<Reflexion, CliError> {
    let check: Box<dyn OutputCheck> = match &input.contract.expect {
        Some(Expectation::Schema { schema }) => {
            Box::new(SchemaCheck::new(schema).map_err(|error| {
                CliError::usage("what is expected cannot be used").with_source(error).with_hint(
                    "it must be a JSON schema; references to other documents are not followed",
                )
            })?)
        }
        Some(Expectation::Text { .. } | Expectation::Pattern { .. }) | None => {
            Box::new(|_: &Value| Vec::new())
        }
    };
    Reflexion::new(input, check).map_err(|error| CliError::usage(error.to_string()))
}

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
pub(super) async fn drive(
    ready: &Ready,
    local: &Local,
    run_id: &RunId,
    input: ReflexionInput,
    ledger: Ledger,
    view: &SharedView,
) -> anyhow::Result<Ended> {
    let store = &local.store;
    let (model, task_bytes) = (input.model.clone(), input.task.len());
    have_inputs(&**store, run_id, &input).await?;
    let mut workflow = workflow(input)?;
    let (models, driver) = driver(ready, store, run_id, ledger, Pace::NONE);
    let (seen, run) = (Arc::clone(view), run_id.clone());
    let driver = driver.on_event(move |stored| {
        log(stored, &model, task_bytes);
        shown(&seen).event(&run, stored);
    });
    let ended = watched(view, driver.drive(&mut workflow)).await;
    let ended = match ended {
        Interruptible::Done(ended) => ended?,
        // The driver is gone, and with it everything under way.
        Interruptible::Cancelled => {
            for stored in cancel(&**store, run_id, models.spent()).await? {
                shown(view).event(run_id, &stored);
            }
            Ended::Cancelled
        }
    };
    if let Ended::Done(outcome) = &ended {
        let success = outcome.verdict == Verdict::Pass;
        let attempts = attempts(outcome);
        tracing::info!(target: "moothall::run", success, attempts, "agent workflow completed");
    }
    Ok(ended)
}

/// A driver that nobody hears yet, and who asks its models.
pub(super) fn driver(
    ready: &Ready,
    store: &Arc<dyn Store>,
    run_id: &RunId,
    ledger: Ledger,
    pace: Pace,
) -> (Arc<ModelPerformer>, Driver) {
    let models = Arc::new(ModelPerformer::new(Arc::clone(&ready.gateway), Arc::new(ledger)));
    let performer = pace.slow(Arc::new(SandboxPerformer::new(
        models.clone(),
        ready.executor.clone(),
        Arc::clone(store),
        run_id.clone(),
    )));
    (models, Driver::new(Arc::clone(store), performer, run_id.clone()))
}

/// A process that is killed right after it made a run leaves one without its inputs. Nobody should
/// pay a model to find out.
pub(super) async fn have_inputs(
    store: &dyn Store,
    run_id: &RunId,
    input: &ReflexionInput,
) -> Result<(), CliError> {
    for (path, file) in &input.inputs {
        if store.artifact(run_id, &file.sha256).await.map_err(local::broken)?.is_none() {
            return Err(CliError::new(
                Exit::Failed,
                format!("the input `{path}` was never kept: the run was killed before it began"),
            )
            .with_hint("start it again with `moothall run`"));
        }
    }
    Ok(())
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

/// What operators read. Of the task only its size: it may hold anything.
pub(super) fn log(stored: &StoredEvent, model: &ModelName, task_bytes: usize) {
    match &stored.event.body {
        RunEventBody::RunStarted { .. } => {
            tracing::info!(target: "moothall::run", task_bytes, "agent workflow started");
        }
        RunEventBody::CodeGenerated { code_lines, confidence_permille, .. } => {
            let confidence = confidence_permille.map(|permille| f64::from(permille) / 1000.0);
            let provider = model.provider();
            tracing::info!(target: "moothall::run", code_lines, confidence, provider, "code generated");
        }
        _ => {}
    }
}
