//! A run with everything that it needs on this machine, ready to be driven.

use std::sync::Arc;

use moothall_core::consult::Review;
use moothall_core::drafts::TaskId;
use moothall_core::evidence::Evidence;
use moothall_core::{EditSpec, Effect, RunId, RunSpec, Workflow};
use moothall_engine::waves::Hands;
use moothall_engine::{
    DraftPerformer, Driver, Ended, EngineError, GatherPerformer, ModelPerformer, Performer,
    SandboxPerformer, Walls,
};
use moothall_models::{Amount, Gateway, Ledger};
use moothall_store::{NewRun, Store, StoredEvent};
use moothall_workspace::{Caller, DraftStore};

use super::consult_resources::ConsultResources;
use super::program_resources::{ProgramResources, require_inputs};
use super::{PARALLEL_MOVES, budget, recording, workflow};
use crate::commands::draft::store as draft_store;
use crate::context::Context;
use crate::display;
use crate::error::CliError;
use crate::local;
use crate::pace::Pace;

/// Calls at once for each debate: a round asks three decision makers together.
const CALLS_OF_A_DEBATE: usize = 5;

/// The longest title of a run; its spec has the whole task.
const TITLE_CHARS: usize = 100;

/// A run with everything that it needs on this machine.
pub(crate) struct PreparedRun {
    spec: RunSpec,
    resources: Resources,
}

enum Resources {
    Consult(Box<ConsultResources>),
    Program(ProgramResources),
    Edit(EditResources),
}

struct EditResources {
    gateway: Arc<Gateway>,
    drafts: Arc<DraftStore>,
    worker: Caller,
}

impl EditResources {
    fn open(context: &Context, spec: &EditSpec) -> Result<Self, CliError> {
        let gateway = Arc::new(context.gateway(&spec.input.model, recording(&spec.settings)?)?);
        let opened = draft_store::open_for(context, &spec.workspace)?;
        opened.warn_about_policy();
        let worker = opened.worker(&spec.worker)?;
        Ok(Self { gateway, drafts: Arc::new(opened.store), worker })
    }
}

/// The parts of a run in progress: its workflow, its driver, and the performer that counts its cost.
pub(crate) struct RunParts {
    pub(crate) workflow: Box<dyn Workflow + Send>,
    pub(crate) driver: Driver,
    pub(crate) models: Arc<ModelPerformer>,
}

impl PreparedRun {
    /// Opens everything that a run needs. Nothing is spent if something is missing.
    pub(crate) async fn open(context: &Context, spec: RunSpec) -> Result<Self, CliError> {
        // Boxed: what looks for sandboxes and evidence is large.
        let resources = match &spec {
            RunSpec::Consult(spec) => {
                let opened = Box::pin(ConsultResources::open(context, spec)).await?;
                Resources::Consult(Box::new(opened))
            }
            RunSpec::Program(spec) => {
                Resources::Program(Box::pin(ProgramResources::open(context, spec)).await?)
            }
            RunSpec::Edit(spec) => Resources::Edit(EditResources::open(context, spec)?),
        };
        Ok(Self { spec, resources })
    }

    /// What it does.
    pub(crate) fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Gathers the evidence of a consultation, to refuse a company that nothing is known about before anything is spent.
    pub(crate) async fn gather(&self) -> Result<Option<Evidence>, CliError> {
        match (&self.spec, &self.resources) {
            (RunSpec::Consult(spec), Resources::Consult(opened)) => opened.gather(spec).await,
            _ => Ok(None),
        }
    }

    /// Why debates have no sandbox although they should, with the remedy.
    pub(crate) fn without_walls(&self) -> Option<&str> {
        match &self.resources {
            Resources::Consult(opened) => opened.without_walls.as_deref(),
            Resources::Program(_) | Resources::Edit(_) => None,
        }
    }

    /// The run for the store.
    pub(crate) fn new_run(&self, evidence: Option<&Evidence>) -> Result<NewRun, CliError> {
        new_run(&self.spec, evidence)
    }

    /// Sandboxes start before they are needed.
    pub(crate) fn warm_up(&self) {
        match &self.resources {
            Resources::Consult(opened) => opened.warm_up(),
            Resources::Program(_) | Resources::Edit(_) => {}
        }
    }

    /// Waits until nothing is left of any sandbox.
    pub(crate) async fn shut_down(&self) {
        match &self.resources {
            Resources::Consult(opened) => opened.shut_down().await,
            Resources::Program(opened) => opened.executor.shut_down().await,
            Resources::Edit(_) => {}
        }
    }

    /// What drives it. The caller holds the lock of the run.
    pub(crate) async fn parts(
        &self,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        ledger: Ledger,
        pace: Pace,
    ) -> Result<RunParts, CliError> {
        if let RunSpec::Program(spec) = &self.spec {
            require_inputs(&**store, run_id, spec).await?;
        }
        let models = Arc::new(ModelPerformer::new(Arc::clone(self.gateway()), Arc::new(ledger)));
        let performer = pace.slow(self.performer(models.clone(), store, run_id)?);
        let driver = Driver::new(Arc::clone(store), performer, run_id.clone());
        let driver = match &self.resources {
            Resources::Consult(_) => {
                let parallel = self.parallel_children();
                driver
                    .at_once(parallel.saturating_mul(CALLS_OF_A_DEBATE))
                    .parallel_children(parallel)
                    .walls(self.walls())
            }
            Resources::Program(_) | Resources::Edit(_) => driver,
        };
        Ok(RunParts { workflow: workflow(&self.spec)?, driver, models })
    }

    fn gateway(&self) -> &Arc<Gateway> {
        match &self.resources {
            Resources::Consult(opened) => &opened.gateway,
            Resources::Program(opened) => &opened.gateway,
            Resources::Edit(opened) => &opened.gateway,
        }
    }

    fn performer(
        &self,
        models: Arc<ModelPerformer>,
        store: &Arc<dyn Store>,
        run_id: &RunId,
    ) -> Result<Arc<dyn Performer>, CliError> {
        Ok(match &self.resources {
            Resources::Consult(opened) => {
                Arc::new(GatherPerformer::new(models, opened.filings.clone()))
            }
            Resources::Program(opened) => {
                let (executor, store) = (opened.executor.clone(), Arc::clone(store));
                Arc::new(SandboxPerformer::new(models, executor, store, run_id.clone()))
            }
            Resources::Edit(opened) => {
                let task = TaskId::parse(&format!("{}-{run_id}", self.spec.kind()))
                    .ok_or_else(|| CliError::failed("the run's name cannot be a task"))?;
                let (drafts, worker) = (Arc::clone(&opened.drafts), opened.worker.clone());
                Arc::new(DraftPerformer::new(models, drafts, worker, task))
            }
        })
    }

    fn walls(&self) -> Walls {
        match &self.resources {
            Resources::Consult(opened) => opened.walls.clone(),
            Resources::Program(_) | Resources::Edit(_) => Walls::None,
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

/// The run for the store, which is created now.
pub(crate) fn new_run(spec: &RunSpec, evidence: Option<&Evidence>) -> Result<NewRun, CliError> {
    local::new_run(spec.clone().into(), spec.model(), &title(spec, evidence))
}

/// What lists show.
fn title(spec: &RunSpec, evidence: Option<&Evidence>) -> String {
    let input = match spec {
        RunSpec::Consult(spec) => &spec.input,
        RunSpec::Program(spec) => return display::cut(&spec.input.task, TITLE_CHARS),
        RunSpec::Edit(spec) => return display::cut(&spec.input.task, TITLE_CHARS),
    };
    let name = match evidence {
        Some(found) => format!("{} {}", input.gather.ticker, display::line(&found.company.name)),
        None => format!("{} (made-up evidence)", input.gather.subject()),
    };
    let (moves, rounds) = (input.all_moves(), input.committee.rounds);
    format!("{}: {moves} moves, {rounds} rounds", name.trim_start())
}

/// A run that a server drives in the background.
pub(crate) struct Unattended {
    pub(crate) run: PreparedRun,
    pub(crate) ledger: Ledger,
    pub(crate) review: Option<Review>,
}

impl Unattended {
    /// Drives it to where it stops. The caller holds the lock of the run.
    pub(crate) async fn drive(
        self,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        pace: Pace,
        on_event: impl FnMut(&StoredEvent) + Send + 'static,
    ) -> Result<Ended, CliError> {
        self.run.warm_up();
        let RunParts { mut workflow, driver, .. } =
            self.run.parts(store, run_id, self.ledger, pace).await?;
        let driver = driver.person_says(self.review).heed_pause().on_event(on_event);
        // Boxed: hundreds of calls under way are large.
        let ended = Box::pin(driver.drive(&mut *workflow)).await.map_err(engine_failure);
        self.run.shut_down().await;
        ended
    }
}

/// A run that a worker of a cluster drives step by step.
pub(crate) struct WorkerRun {
    pub(crate) run: PreparedRun,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) run_id: RunId,
    pub(crate) pace: Pace,
}

impl WorkerRun {
    /// The run at its beginning, as the cluster drives it.
    pub(crate) fn opened(self: &Arc<Self>) -> Result<moothall_restate::Opened, CliError> {
        Ok(moothall_restate::Opened {
            store: Arc::clone(&self.store),
            workflow: workflow(self.run.spec())?,
            walls: self.run.walls(),
            budget: budget(self.run.spec().settings()),
            parallel_children: self.run.parallel_children(),
            hands: self.clone(),
        })
    }
}

impl std::fmt::Debug for WorkerRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerRun").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

impl Hands for WorkerRun {
    fn performer(&self, ledger: Arc<Ledger>) -> Arc<dyn Performer> {
        let models = Arc::new(ModelPerformer::new(Arc::clone(self.run.gateway()), ledger));
        match self.run.performer(models.clone(), &self.store, &self.run_id) {
            Ok(performer) => self.pace.slow(performer),
            // Only edits can fail here, and workers refuse to open them.
            Err(_) => models,
        }
    }

    fn most_of(&self, effect: &Effect) -> Amount {
        match effect {
            Effect::CallModel(request) => self.run.gateway().most_of(request),
            Effect::Execute(_)
            | Effect::Gather(_)
            | Effect::Draft(_)
            | Effect::StartChild(_)
            | Effect::AskPerson(_) => Amount::default(),
        }
    }
}

/// Why a run could not be driven, for a person.
pub(crate) fn engine_failure(error: EngineError) -> CliError {
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
