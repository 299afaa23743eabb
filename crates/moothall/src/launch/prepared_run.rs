//! A run with its opened resources, ready to execute.

use std::sync::Arc;

use moothall_core::consult::{EvidenceSource, MoveReview};
use moothall_core::drafts::TaskId;
use moothall_core::evidence::Evidence;
use moothall_core::report::DeriveFault;
use moothall_core::sandbox::IsolationClass;
use moothall_core::{EditSpec, Effect, RunId, RunSpec, Workflow};
use moothall_engine::durable::PerformerFactory;
use moothall_engine::{
    DraftPerformer, EffectPerformer, EngineError, GatherPerformer, IsolationMode, ModelPerformer,
    RunDriver, RunExit, SandboxPerformer,
};
use moothall_models::{CallCost, Gateway, RunLedger};
use moothall_store::{NewRun, Store, StoredEvent};
use moothall_workspace::{DraftCaller, DraftStore};

use super::consult_resources::ConsultResources;
use super::program_resources::{ProgramResources, require_inputs};
use super::{PARALLEL_MOVES, RunFiles, budget, recording, workflow};
use crate::commands::draft::store as draft_store;
use crate::context::CommandContext;
use crate::demo_delay::DemoDelay;
use crate::display;
use crate::error::CliError;
use crate::received_text::ReceivedText;
use crate::{run_store, telemetry};

/// Concurrent calls per debate: a round calls three decision makers together.
const CALLS_PER_DEBATE: usize = 5;

/// Limit of a run's title; its spec has the complete task.
const TITLE_CHARS: usize = 100;

/// A run spec with the resources opened for it.
pub(crate) struct PreparedRun {
    spec: RunSpec,
    resources: RunResources,
}

enum RunResources {
    Consult(Box<ConsultResources>),
    Program(ProgramResources),
    Edit(EditResources),
}

struct EditResources {
    gateway: Arc<Gateway>,
    drafts: Arc<DraftStore>,
    worker: DraftCaller,
}

impl EditResources {
    fn open(context: &CommandContext, spec: &EditSpec) -> Result<Self, CliError> {
        let gateway = Arc::new(context.gateway_of(&spec.input.model, recording(&spec.settings)?)?);
        let opened = draft_store::open_for(context, &spec.workspace)?;
        opened.warn_about_policy();
        let worker = opened.worker(&spec.worker)?;
        Ok(Self { gateway, drafts: Arc::new(opened.store), worker })
    }
}

/// The parts of an executing run: its workflow and its driver.
pub(crate) struct RunParts {
    pub(crate) workflow: Box<dyn Workflow + Send>,
    pub(crate) driver: RunDriver,
}

impl PreparedRun {
    /// Opens everything that a new run without uploaded files needs. Fails before anything is
    /// spent.
    pub(crate) async fn open(context: &CommandContext, spec: RunSpec) -> Result<Self, CliError> {
        Self::open_with(context, spec, &RunFiles::default()).await
    }

    /// Opens everything that a stored run needs, with its uploaded files.
    pub(crate) async fn open_stored(
        context: &CommandContext,
        spec: RunSpec,
        store: &dyn Store,
        run_id: &RunId,
    ) -> Result<Self, CliError> {
        let files = RunFiles::load(store, run_id, spec.settings()).await?;
        Self::open_with(context, spec, &files).await
    }

    /// Opens everything that a run needs; `files` has the files that were sent with the request.
    pub(crate) async fn open_with(
        context: &CommandContext,
        spec: RunSpec,
        files: &RunFiles,
    ) -> Result<Self, CliError> {
        // Boxed because the futures that find sandboxes and evidence are large.
        let resources = match &spec {
            RunSpec::Consult(spec) => {
                let opened = Box::pin(ConsultResources::open(context, spec, files)).await?;
                RunResources::Consult(Box::new(opened))
            }
            RunSpec::Program(spec) => {
                RunResources::Program(Box::pin(ProgramResources::open(context, spec)).await?)
            }
            RunSpec::Edit(spec) => RunResources::Edit(EditResources::open(context, spec)?),
        };
        Ok(Self { spec, resources })
    }

    pub(crate) fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Gathers the evidence of a consultation, to reject a company without data before anything is
    /// spent.
    pub(crate) async fn gather(&self) -> Result<Option<Evidence>, CliError> {
        match (&self.spec, &self.resources) {
            (RunSpec::Consult(spec), RunResources::Consult(opened)) => opened.gather(spec).await,
            _ => Ok(None),
        }
    }

    /// The class of [`Self::isolation_notice`].
    pub(crate) fn announced_class(&self) -> Option<IsolationClass> {
        self.isolation_notice().map(|(class, _)| *class)
    }

    /// The class of the debates if it is weaker than a microVM, with the line that says why and
    /// which command changes it.
    pub(crate) fn isolation_notice(&self) -> Option<&(IsolationClass, String)> {
        match &self.resources {
            RunResources::Consult(opened) => opened.isolation.notice.as_ref(),
            RunResources::Program(_) | RunResources::Edit(_) => None,
        }
    }

    pub(crate) fn new_run(&self, evidence: Option<&Evidence>) -> Result<NewRun, CliError> {
        new_run(&self.spec, evidence)
    }

    /// Starts sandboxes in advance.
    pub(crate) fn warm_up(&self) {
        match &self.resources {
            RunResources::Consult(opened) => opened.warm_up(),
            RunResources::Program(opened) => opened.warm_up(),
            RunResources::Edit(_) => {}
        }
    }

    /// Waits until all sandboxes are removed.
    pub(crate) async fn shut_down(&self) {
        match &self.resources {
            RunResources::Consult(opened) => opened.shut_down().await,
            RunResources::Program(opened) => opened.executor.shut_down().await,
            RunResources::Edit(_) => {}
        }
    }

    /// Builds the driver. The caller holds the lock of the run. Counts the text of answers while they
    /// arrive, if there is a place for it.
    pub(crate) async fn parts(
        &self,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        ledger: RunLedger,
        delay: DemoDelay,
        received: Option<ReceivedText>,
    ) -> Result<RunParts, CliError> {
        let models = ModelPerformer::new(Arc::clone(self.gateway()), Arc::new(ledger))
            .with_listeners(move |request| {
                Some(received.as_ref()?.listener(request.prompt_tokens_expected()))
            });
        if let RunSpec::Program(spec) = &self.spec {
            require_inputs(&**store, run_id, spec).await?;
        }
        let performer = delay.wrap(self.performer(Arc::new(models), store, run_id)?);
        let driver = RunDriver::new(Arc::clone(store), performer, run_id.clone());
        let driver = match &self.resources {
            RunResources::Consult(_) => {
                let parallel = self.parallel_children();
                driver
                    .at_once(parallel.saturating_mul(CALLS_PER_DEBATE))
                    .parallel_children(parallel)
                    .isolation(self.isolation_mode())
            }
            RunResources::Program(_) | RunResources::Edit(_) => driver,
        };
        Ok(RunParts { workflow: workflow(&self.spec)?, driver })
    }

    fn gateway(&self) -> &Arc<Gateway> {
        match &self.resources {
            RunResources::Consult(opened) => &opened.gateway,
            RunResources::Program(opened) => &opened.gateway,
            RunResources::Edit(opened) => &opened.gateway,
        }
    }

    fn performer(
        &self,
        models: Arc<ModelPerformer>,
        store: &Arc<dyn Store>,
        run_id: &RunId,
    ) -> Result<Arc<dyn EffectPerformer>, CliError> {
        Ok(match &self.resources {
            RunResources::Consult(opened) => {
                let filings = opened.filings.clone();
                let Some(executor) = opened.calculations.clone() else {
                    return Ok(Arc::new(GatherPerformer::new(models, filings)));
                };
                let store = Arc::clone(store);
                let executing = SandboxPerformer::new(models, executor, store, run_id.clone());
                Arc::new(GatherPerformer::new(Arc::new(executing.for_calculations()), filings))
            }
            RunResources::Program(opened) => {
                let (executor, store) = (opened.executor.clone(), Arc::clone(store));
                Arc::new(SandboxPerformer::new(models, executor, store, run_id.clone()))
            }
            RunResources::Edit(opened) => {
                let task = TaskId::parse(&format!("{}-{run_id}", self.spec.kind()))
                    .ok_or_else(|| CliError::failed("the run id is not a valid task name"))?;
                let (drafts, worker) = (Arc::clone(&opened.drafts), opened.worker.clone());
                Arc::new(DraftPerformer::new(models, drafts, worker, task))
            }
        })
    }

    fn isolation_mode(&self) -> IsolationMode {
        match &self.resources {
            RunResources::Consult(opened) => opened.isolation.mode.clone(),
            RunResources::Program(_) | RunResources::Edit(_) => IsolationMode::None,
        }
    }

    fn parallel_children(&self) -> usize {
        match &self.spec {
            RunSpec::Consult(spec) => {
                spec.settings.parallel_moves.unwrap_or(PARALLEL_MOVES).max(1) as usize
            }
            RunSpec::Program(_) | RunSpec::Edit(_) => 1,
        }
    }
}

/// A new run with a fresh id and the current time.
pub(crate) fn new_run(spec: &RunSpec, evidence: Option<&Evidence>) -> Result<NewRun, CliError> {
    let mut stored = spec.clone();
    stored.settings_mut().trace_parent = telemetry::trace_parent();
    run_store::new_run(stored.into(), spec.model(), &title(spec, evidence))
}

/// The title shown in lists.
fn title(spec: &RunSpec, evidence: Option<&Evidence>) -> String {
    let input = match spec {
        RunSpec::Consult(spec) => &spec.input,
        RunSpec::Program(spec) => return display::cut(&spec.input.task, TITLE_CHARS),
        RunSpec::Edit(spec) => return display::cut(&spec.input.task, TITLE_CHARS),
    };
    let name = match evidence {
        Some(found) => format!("{} {}", input.gather.ticker, display::line(&found.company.name)),
        None if input.gather.source == EvidenceSource::Synthetic => {
            format!("{} (synthetic evidence)", input.gather.subject())
        }
        None => display::line(input.gather.subject()),
    };
    let (moves, rounds) = (input.all_moves(), input.committee.rounds);
    format!("{}: {moves} moves, {rounds} rounds", name.trim_start())
}

/// A run that a server executes in the background.
pub(crate) struct BackgroundRun {
    pub(crate) run: PreparedRun,
    pub(crate) ledger: RunLedger,
    pub(crate) review: Option<MoveReview>,
}

impl BackgroundRun {
    /// Executes the run until it ends or pauses. The caller holds the lock of the run.
    pub(crate) async fn drive(
        self,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        delay: DemoDelay,
        on_event: impl FnMut(&StoredEvent) + Send + 'static,
    ) -> Result<RunExit, CliError> {
        self.run.warm_up();
        let RunParts { mut workflow, driver } =
            self.run.parts(store, run_id, self.ledger, delay, None).await?;
        let driver = driver.person_review(self.review).honor_pause().on_event(on_event);
        // Boxed because the future holds hundreds of concurrent calls.
        let ended = Box::pin(driver.drive(&mut *workflow)).await.map_err(engine_failure);
        self.run.shut_down().await;
        ended
    }
}

/// A run that a cluster worker executes step by step.
pub(crate) struct WorkerRun {
    pub(crate) run: PreparedRun,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) run_id: RunId,
    pub(crate) delay: DemoDelay,
}

impl WorkerRun {
    /// The run in its initial state, for the cluster.
    pub(crate) fn opened(self: &Arc<Self>) -> Result<moothall_restate::OpenedRun, CliError> {
        Ok(moothall_restate::OpenedRun {
            store: Arc::clone(&self.store),
            workflow: workflow(self.run.spec())?,
            isolation: self.run.isolation_mode(),
            budget: budget(self.run.spec().settings()),
            parallel_children: self.run.parallel_children(),
            performers: self.clone(),
            trace_parent: self.run.spec().settings().trace_parent.clone(),
        })
    }
}

impl std::fmt::Debug for WorkerRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerRun").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

impl PerformerFactory for WorkerRun {
    fn performer(&self, ledger: Arc<RunLedger>) -> Arc<dyn EffectPerformer> {
        let models = Arc::new(ModelPerformer::new(Arc::clone(self.run.gateway()), ledger));
        match self.run.performer(models.clone(), &self.store, &self.run_id) {
            Ok(performer) => self.delay.wrap(performer),
            // Only edits can fail here, and workers never open them.
            Err(_) => models,
        }
    }

    fn max_cost(&self, effect: &Effect) -> CallCost {
        match effect {
            Effect::CallModel(request) => self.run.gateway().max_cost(request),
            Effect::Execute(_)
            | Effect::Gather(_)
            | Effect::Draft(_)
            | Effect::StartChild(_)
            | Effect::AskPerson(_) => CallCost::default(),
        }
    }
}

const OTHER_VERSION_HINT: &str =
    "it may have been started by another version of moothall; `moothall show` can still display it";

/// A consultation whose stored results do not fit this version's workflow.
pub(crate) fn unreadable_consultation(error: DeriveFault) -> CliError {
    CliError::failed("cannot reconstruct the consultation from the run's journal")
        .with_source(error)
        .with_hint("if another version of moothall executed it, use that version")
}

pub(crate) fn engine_failure(error: EngineError) -> CliError {
    match error {
        EngineError::Store(error) => run_store::store_error(error),
        EngineError::JournalMismatch { .. } => CliError::failed("the run cannot be resumed")
            .with_source(error)
            .with_hint(OTHER_VERSION_HINT),
        error => {
            let hint = match error.is_retryable() {
                true => "continue it with `moothall resume`",
                false => OTHER_VERSION_HINT,
            };
            CliError::failed("the run cannot be executed").with_source(error).with_hint(hint)
        }
    }
}
