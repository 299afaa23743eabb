//! Implements the server's [`RunService`] with this machine's configuration, API keys, models and
//! sandboxes, and executes the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::consult::{ReviewAction, ReviewChange};
use moothall_core::report::PaperSize;
use moothall_core::report::document::ReportDocument;
use moothall_core::{RunId, RunSpec};
use moothall_engine::{EngineError, RunRecord, cancel};
use moothall_models::{Budget, RunLedger};
use moothall_server::dto::{
    CheckTextRequest, CommitteeList, DoctorResponse, EditMovesRequest, FactsQuery, ForkRunRequest,
    ResumeRunRequest, ServerSettings, StartConsultRequest, StartRunRequest, TickerList,
};
use moothall_server::{
    ApiProblem, EventFeed, RunService, RunServiceFuture, StartOutcome, StartRequest, StartTerms,
    StatusCode,
};
use moothall_sources::DocumentFolder;
use moothall_store::{
    AdmissionDecision, AdmissionTerms, ControlRequest, IdempotencyKey, NewRun, RunRow, Store,
    StoreError, StoredEvent, now_ms,
};
use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::doctor_cache::DoctorCache;
use super::error_mapping::{ErrorDisclosure, limit_problem};
use super::page_data;
use crate::commands::check::{TextCheckReport, UncitedNumbers};
use crate::commands::resumable_run::lock_error;
use crate::commands::{consult, facts, moves, run};
use crate::context::CommandContext;
use crate::demo_delay::DemoDelay;
use crate::error::CliError;
use crate::launch::{
    self, BackgroundRun, ConsultForkRequest, ConsultPlan, ConsultRequest, PreparedRun,
    ProgramRequest, RunFiles, ServerDefaults, cluster, parse_budget,
};
use crate::notify::{self, RunNotification};
use crate::pdf_helper;
use crate::run_store::{self, DriverLock, RunStore};

/// How long shutdown waits for calls in progress, because they are already paid for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) struct LocalRunService {
    config: Option<PathBuf>,
    local: Arc<RunStore>,
    feed: Arc<EventFeed>,
    defaults: ServerDefaults,
    delay: DemoDelay,
    disclosure: ErrorDisclosure,
    tasks: Mutex<BTreeMap<RunId, JoinHandle<()>>>,
    doctor_cache: DoctorCache,
}

/// A run whose files are being stored. Without them it could never start, so it is deleted if this is
/// dropped: storing failed, or the client closed the connection.
struct IncompleteRun(Option<(Arc<dyn Store>, RunId)>);

impl IncompleteRun {
    fn complete(mut self) {
        self.0 = None;
    }
}

impl Drop for IncompleteRun {
    fn drop(&mut self) {
        if let Some((store, run_id)) = self.0.take() {
            tokio::spawn(async move {
                if let Err(error) = store.delete_runs(&[run_id]).await {
                    tracing::warn!(%error, "cannot delete a run without its files");
                }
            });
        }
    }
}

/// A request whose resources are opened.
struct OpenedRequest {
    context: CommandContext,
    run: PreparedRun,
    new: NewRun,
    files: RunFiles,
}

impl std::fmt::Debug for LocalRunService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRunService")
            .field("driving", &self.tasks().keys())
            .finish_non_exhaustive()
    }
}

impl LocalRunService {
    pub(crate) fn new(
        config: Option<PathBuf>,
        local: Arc<RunStore>,
        feed: Arc<EventFeed>,
        defaults: ServerDefaults,
        delay: DemoDelay,
        disclosure: ErrorDisclosure,
    ) -> Self {
        let (tasks, doctor_cache) = (Mutex::default(), DoctorCache::default());
        Self { config, local, feed, defaults, delay, disclosure, tasks, doctor_cache }
    }

    fn problem(&self, error: CliError) -> ApiProblem {
        self.disclosure.problem(&error)
    }

    /// Reloads configuration and keys for every request, so a new key needs no restart.
    fn context(&self, flags: toml::Table) -> Result<CommandContext, CliError> {
        CommandContext::load(self.config.as_deref(), flags)
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<RunId, JoinHandle<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self, request: ConsultRequest) -> Result<(CommandContext, ConsultPlan), CliError> {
        let context = request.context(self.config.as_deref())?;
        let plan = request.plan(&context)?;
        Ok((context, plan))
    }

    fn spec(
        &self,
        request: StartRunRequest,
    ) -> Result<(CommandContext, RunSpec, RunFiles), CliError> {
        match request {
            StartRunRequest::Consult(request) => {
                let request = ConsultRequest::from_http(request, &self.defaults)?;
                let (context, plan) = self.plan(request.require_documents()?)?;
                Ok((context, RunSpec::Consult(plan.spec), plan.files))
            }
            StartRunRequest::Reflexion(request) => {
                let request = ProgramRequest::from_http(&request, &self.defaults)?;
                let context = request.context(self.config.as_deref())?;
                let spec = request.spec(&context)?;
                Ok((context, RunSpec::Program(spec), RunFiles::of(request.inputs.into_values())))
            }
        }
    }

    async fn open(&self, request: StartRunRequest) -> Result<OpenedRequest, CliError> {
        let (context, spec, files) = self.spec(request)?;
        let run = PreparedRun::open_with(&context, spec, &files).await?;
        // Sandboxes that read PDFs can take minutes, so a run with PDFs reads its evidence itself.
        let is_slow = |name: &String| DocumentFolder::needs_sandbox(name);
        let evidence = match run.spec().settings().uploads.keys().any(is_slow) {
            true => None,
            // Boxed because the future is large.
            false => Box::pin(run.gather()).await?,
        };
        let new = run.new_run(evidence.as_ref())?;
        Ok(OpenedRequest { context, run, new, files })
    }

    async fn start_run(&self, start_request: StartRequest) -> Result<StartOutcome, ApiProblem> {
        let StartRequest { request, terms } = start_request;
        let opened = self.open(request).await.map_err(|error| self.problem(error))?;
        self.admit(opened, terms).await
    }

    /// Opens a fork. Its evidence is inherited, so none is gathered.
    async fn open_fork(
        &self,
        parent: &RunRow,
        request: ForkRunRequest,
        by: &str,
    ) -> Result<OpenedRequest, CliError> {
        let request = ConsultForkRequest::from_http(request, &self.defaults, parent, by)?;
        let context = request.context(self.config.as_deref(), parent)?;
        let record = RunRecord::read(&*self.local.store, &parent.run_id)
            .await
            .map_err(run_store::store_error)?;
        let fork = request.plan(&context, &record)?;
        let spec = RunSpec::Consult(fork.plan.spec.clone());
        let files = RunFiles::load(&*self.local.store, &parent.run_id, spec.settings()).await?;
        let run = PreparedRun::open_with(&context, spec, &files).await?;
        let new = run.new_run(fork.evidence())?;
        let new = NewRun { inherited: fork.inherited, ..new };
        Ok(OpenedRequest { context, run, new, files })
    }

    /// Creates a run within the limits of its owner and executes it.
    async fn admit(
        &self,
        opened: OpenedRequest,
        terms: StartTerms,
    ) -> Result<StartOutcome, ApiProblem> {
        let OpenedRequest { context, run, new, files } = opened;
        let StartTerms { owner, idempotency_key } = terms;
        let settings = run.spec().settings().clone();
        let new = NewRun { owner, cap: settings.budget_micro_usd, ..new };
        let (run_id, spec) = (new.run_id.clone(), new.spec.clone());
        // Lock before the run exists, so no other process can execute it first.
        let lock =
            self.local.lock(&run_id).await.map_err(|error| self.problem(lock_error(error)))?;
        let idempotency_key = idempotency_key
            .map(|sent| IdempotencyKey { key: sent.key, request_sha256: sent.request_sha256 });
        let day_began_at_ms = now_ms().saturating_sub(DAY_MS);
        let terms = AdmissionTerms { idempotency_key, day_began_at_ms };
        match self.local.store.admit_run(new, terms).await? {
            AdmissionDecision::Created => {
                let incomplete = IncompleteRun(Some((self.local.store.clone(), run_id.clone())));
                // Before the run is executed, by this process or a worker.
                files.store(&*self.local.store, &run_id).await?;
                incomplete.complete();
            }
            AdmissionDecision::AlreadyCreated(before) => {
                // The process that created it may have died before storing its files.
                match files.store(&*self.local.store, &before).await {
                    Ok(()) | Err(StoreError::RunEnded { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                // The process that created it may have died before submitting it to the cluster.
                if let Some(restate) = settings.restate {
                    let started = cluster::start(&restate, &spec, &before).await;
                    started.map_err(|error| self.problem(cluster::cluster_error(error)))?;
                }
                return Ok(StartOutcome::Before(before));
            }
            AdmissionDecision::OtherRequest => {
                return Err(ApiProblem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    ErrorCode::IdempotencyKeyReused,
                    "this `Idempotency-Key` was already used for a different request",
                )
                .with_hint("use a new key for a new request"));
            }
            AdmissionDecision::Refused(excess) => return Err(limit_problem(excess)),
        }
        match &settings.restate {
            None => {
                let ledger = RunLedger::new(launch::budget(&settings));
                let background_run = BackgroundRun { run, ledger, review: None };
                self.drive(run_id.clone(), lock, context, background_run);
            }
            Some(restate) => {
                let started =
                    cluster::submit_new_run(restate, &spec, &*self.local.store, &run_id).await;
                run.shut_down().await;
                started.map_err(|error| self.problem(error))?;
            }
        }
        Ok(StartOutcome::Now(run_id))
    }

    /// Executes a run in a new task.
    fn drive(&self, run_id: RunId, lock: DriverLock, context: CommandContext, run: BackgroundRun) {
        let (store, feed) = (self.local.store.clone(), Arc::clone(&self.feed));
        let (delay, id, spec) = (self.delay, run_id.clone(), run.run.spec().clone());
        let driven = async move {
            let event_run_id = id.clone();
            let on_event = move |stored: &StoredEvent| {
                run::log(stored, &spec);
                feed.committed(&event_run_id, stored);
            };
            // Boxed because the future holds hundreds of concurrent calls.
            let ended = Box::pin(run.drive(&store, &id, delay, on_event)).await;
            drop(lock);
            if let Err(error) = &ended {
                let error = error.full_message();
                tracing::error!(target: "moothall::serve", run_id = %id, error, "run failed");
            }
            let notification =
                ended.as_ref().map_or(Some(RunNotification::Failed), RunNotification::of);
            notify::send(&context.loaded, &id, notification).await;
        };
        // Keeps the run in the trace of the request that started it.
        let task = tokio::spawn(driven.in_current_span());
        let mut tasks = self.tasks();
        tasks.retain(|_, task| !task.is_finished());
        tasks.insert(run_id, task);
    }

    async fn raise_cap(&self, row: &RunRow, request: &ResumeRunRequest) -> Result<(), ApiProblem> {
        let budget =
            parse_budget(request.budget_usd.as_deref()).map_err(|error| self.problem(error))?;
        let Some(cap) = budget else { return Ok(()) };
        let day_began_at_ms = now_ms().saturating_sub(DAY_MS);
        let changed = self.local.store.change_cap(&row.run_id, Some(cap), day_began_at_ms).await?;
        changed.map_err(limit_problem)
    }

    async fn resume_run(&self, row: RunRow, request: ResumeRunRequest) -> Result<(), CliError> {
        let budget = parse_budget(request.budget_usd.as_deref())?;
        let more = Budget { usd: budget, tokens: None };
        if let Some(restate) = run_store::restate_url(&row.spec) {
            return cluster::resume(restate, &*self.local.store, &row.run_id, more).await;
        }
        let lock = self.local.lock(&row.run_id).await.map_err(lock_error)?;
        let store = &*self.local.store;
        let spec = launch::stored_spec(&row.spec, more)?;
        if let RunSpec::Edit(_) = spec {
            return Err(edit_not_resumable(&row));
        }
        let context = launch::context(self.config.as_deref(), spec.settings(), Some(spec.model()))?;
        let budget = launch::budget(spec.settings());
        let run = PreparedRun::open_stored(&context, spec, store, &row.run_id).await?;
        let record = RunRecord::read(store, &row.run_id).await.map_err(run_store::store_error)?;
        let review = consult::review(store, &record).await?;
        let ledger = RunLedger::resume(budget, row.spent.unwrap_or_default());
        // Before the client learns that the run has resumed, so a later pause request is not
        // removed.
        store
            .clear_control(&row.run_id, ControlRequest::Pause)
            .await
            .map_err(run_store::store_error)?;
        self.drive(row.run_id, lock, context, BackgroundRun { run, ledger, review });
        Ok(())
    }

    async fn cancel_run(&self, row: RunRow) -> Result<(), CliError> {
        let (store, run_id) = (&*self.local.store, &row.run_id);
        if let Some(restate) = run_store::restate_url(&row.spec) {
            return cluster::cancel(restate, store, run_id).await;
        }
        let broken =
            |error: EngineError| CliError::failed("cannot cancel the run").with_source(error);
        match self.local.lock(run_id).await {
            // No process executes the run, so a cancel request would never be read.
            Ok(_lock) => {
                for stored in cancel(store, run_id, None).await.map_err(broken)? {
                    self.feed.committed(run_id, &stored);
                }
                Ok(())
            }
            Err(EngineError::Busy(_)) => store
                .request_control(run_id, ControlRequest::Cancel)
                .await
                .map_err(run_store::store_error),
            Err(error) => Err(broken(error)),
        }
    }
}

impl RunService for LocalRunService {
    fn start(&self, start_request: StartRequest) -> RunServiceFuture<'_, StartOutcome> {
        Box::pin(self.start_run(start_request))
    }

    fn fork(
        &self,
        parent: RunRow,
        request: ForkRunRequest,
        by: String,
        terms: StartTerms,
    ) -> RunServiceFuture<'_, StartOutcome> {
        Box::pin(async move {
            // Boxed because the future is large.
            let opened = Box::pin(self.open_fork(&parent, request, &by)).await;
            self.admit(opened.map_err(|error| self.problem(error))?, terms).await
        })
    }

    fn resume(&self, row: RunRow, request: ResumeRunRequest) -> RunServiceFuture<'_, ()> {
        Box::pin(async move {
            self.raise_cap(&row, &request).await?;
            self.resume_run(row, request).await.map_err(|error| self.problem(error))
        })
    }

    fn cancel(&self, row: RunRow) -> RunServiceFuture<'_, ()> {
        Box::pin(async move { self.cancel_run(row).await.map_err(|error| self.problem(error)) })
    }

    fn delete(&self, row: RunRow) -> RunServiceFuture<'_, ()> {
        Box::pin(async move {
            // Waits for a process whose run has just ended and that still writes its results.
            let lock = self.local.lock(&row.run_id).await;
            let lock = lock.map_err(|error| self.problem(lock_error(error)))?;
            self.local.store.delete_runs(std::slice::from_ref(&row.run_id)).await?;
            drop(lock);
            self.local.forget(&row.run_id);
            if let Err(error) = self.local.store.reclaim_space().await {
                tracing::warn!(%error, "the space of a deleted run was not reclaimed");
            }
            Ok(())
        })
    }

    fn driven(&self, rows: Vec<RunRow>) -> RunServiceFuture<'_, BTreeSet<RunId>> {
        Box::pin(async move { Ok(self.local.driven(&rows).await?) })
    }

    fn moves(
        &self,
        row: RunRow,
        change: Option<(EditMovesRequest, String)>,
    ) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let changed = async {
                moves::ensure_consultation(&row)?;
                moves::change(
                    &self.local,
                    &row.run_id,
                    change.map(edit_request).unwrap_or_default(),
                )
                .await
            };
            let report = changed.await.and_then(|changed| changed.report());
            report.map_err(|error| self.problem(error))
        })
    }

    fn estimate(&self, request: StartConsultRequest) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let request = ConsultRequest::from_http(request, &self.defaults);
            let plan = request.and_then(|request| self.plan(request));
            let (_, plan) = plan.map_err(|error| self.problem(error))?;
            Ok(plan.estimate.json(plan.cap, &[]))
        })
    }

    fn facts(&self, ticker: String, query: FactsQuery) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            let FactsQuery { as_of, allow_stale } = query;
            let found = page_data::evidence(&context.loaded, offline, &ticker, as_of, allow_stale);
            let evidence = found.await.map_err(|error| self.problem(error))?;
            let sheet = facts::sheet_of(&evidence).map_err(|error| self.problem(error))?;
            Ok(facts::report(&evidence, sheet))
        })
    }

    fn check(&self, request: CheckTextRequest) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            let CheckTextRequest { ticker, text, as_of, lenient } = request;
            let found = page_data::evidence(&context.loaded, offline, &ticker, as_of, true);
            let evidence = found.await.map_err(|error| self.problem(error))?;
            // Matching patterns on a long text would block the async runtime.
            let checked = tokio::task::spawn_blocking(move || {
                let uncited = UncitedNumbers::allowed_if(lenient);
                let checked = TextCheckReport::of(&text, &evidence, uncited);
                checked.report("-".as_ref(), &text, &evidence)
            });
            checked.await.map_err(|error| ApiProblem::internal(&error))
        })
    }

    fn tickers(&self, query: String) -> RunServiceFuture<'_, TickerList> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            page_data::tickers(&context.loaded, offline, &query)
                .await
                .map_err(|error| self.problem(error))
        })
    }

    fn committees(&self) -> Result<CommitteeList, ApiProblem> {
        Ok(page_data::committees(&self.defaults.committees))
    }

    fn settings(&self) -> RunServiceFuture<'_, ServerSettings> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.is_some();
            Ok(page_data::settings(
                &context,
                self.defaults.model.as_ref(),
                offline,
                self.delay,
                &self.disclosure,
            ))
        })
    }

    fn doctor(&self) -> RunServiceFuture<'_, DoctorResponse> {
        Box::pin(async move {
            let found = self.doctor_cache.ask(self.config.clone()).await;
            found.map_err(|error| self.problem(error))
        })
    }

    fn pdf(&self, memo: ReportDocument) -> RunServiceFuture<'_, Vec<u8>> {
        Box::pin(async move {
            let pdf = pdf_helper::typeset(&memo, PaperSize::A4).await;
            pdf.map_err(|error| self.problem(error))
        })
    }

    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let tasks = std::mem::take(&mut *self.tasks());
            for (run_id, _) in tasks.iter().filter(|(_, task)| !task.is_finished()) {
                // A run that has just ended may refuse the request.
                let _ = self.local.store.request_control(run_id, ControlRequest::Pause).await;
            }
            let deadline = tokio::time::Instant::now() + SHUTDOWN_TIMEOUT;
            for (_, task) in tasks {
                let abort = task.abort_handle();
                if tokio::time::timeout_at(deadline, task).await.is_err() {
                    abort.abort();
                }
            }
        })
    }
}

/// Converts a request to change moves, with its author.
fn edit_request((change, by): (EditMovesRequest, String)) -> moves::MoveEditRequest {
    let with_change = |what, seal| moves::MoveEditRequest {
        changes: vec![(ReviewChange { by, at_ms: now_ms(), what }, seal)],
        undo: None,
    };
    match change {
        EditMovesRequest::Undo { seal } => moves::MoveEditRequest {
            changes: Vec::new(),
            undo: Some(moves::UndoRequest { seen: seal }),
        },
        EditMovesRequest::Veto { move_id, why, seal } => {
            with_change(ReviewAction::Veto { move_id, why: why.trim().to_owned() }, seal)
        }
        EditMovesRequest::Edit { move_id, proposal, seal } => {
            with_change(ReviewAction::Edit { move_id, proposal }, seal)
        }
    }
}

/// The server can only edit in its configured workspaces, and the run may belong to another
/// directory.
fn edit_not_resumable(row: &RunRow) -> CliError {
    let id = run_store::short_id(&row.run_id);
    CliError::usage("a run that edits files cannot be resumed by a server")
        .with_hint(format!("run `moothall resume {id}` in its directory"))
        .with_code(ErrorCode::ResumeElsewhere)
}
