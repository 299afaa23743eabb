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
    CheckTextRequest, CommitteeList, DoctorResponse, EditMovesRequest, FactsQuery,
    ResumeRunRequest, ServerSettings, StartConsultRequest, StartRunRequest, TickerList,
};
use moothall_server::{
    ApiProblem, EventFeed, RunService, RunServiceFuture, StartOutcome, StartRequest, StatusCode,
};
use moothall_store::{
    AdmissionDecision, AdmissionTerms, ControlRequest, IdempotencyKey, NewRun, RunRow, StoredEvent,
    now_ms,
};
use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::doctor_cache::DoctorCache;
use super::error_mapping::{ErrorDisclosure, beyond};
use super::page_data as known;
use crate::commands::check::TextCheckReport;
use crate::commands::resumable_run::unlocked;
use crate::commands::{consult, facts, moves, run};
use crate::context::CommandContext;
use crate::demo_delay::DemoDelay;
use crate::error::CliError;
use crate::launch::{
    self, BackgroundRun, ConsultPlan, ConsultRequest, PreparedRun, ProgramRequest, ServerDefaults,
    cluster, parse_budget,
};
use crate::notify::{self, RunNotification};
use crate::pdf_helper;
use crate::run_store::{self, DriverLock, RunStore};

/// How long shutdown waits for calls in progress, because they are already paid for.
const PATIENCE: Duration = Duration::from_secs(30);

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) struct LocalRunService {
    config: Option<PathBuf>,
    local: Arc<RunStore>,
    feed: Arc<EventFeed>,
    defaults: ServerDefaults,
    pace: DemoDelay,
    causes: ErrorDisclosure,
    driving: Mutex<BTreeMap<RunId, JoinHandle<()>>>,
    probing: DoctorCache,
}

impl std::fmt::Debug for LocalRunService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRunService")
            .field("driving", &self.driving().keys())
            .finish_non_exhaustive()
    }
}

impl LocalRunService {
    pub(crate) fn new(
        config: Option<PathBuf>,
        local: Arc<RunStore>,
        feed: Arc<EventFeed>,
        defaults: ServerDefaults,
        pace: DemoDelay,
        causes: ErrorDisclosure,
    ) -> Self {
        let (driving, probing) = (Mutex::default(), DoctorCache::default());
        Self { config, local, feed, defaults, pace, causes, driving, probing }
    }

    fn problem(&self, error: CliError) -> ApiProblem {
        self.causes.problem(&error)
    }

    /// Reloads configuration and keys for every request, so a new key needs no restart.
    fn context(&self, flags: toml::Table) -> Result<CommandContext, CliError> {
        CommandContext::load(self.config.as_deref(), flags)
    }

    fn driving(&self) -> MutexGuard<'_, BTreeMap<RunId, JoinHandle<()>>> {
        self.driving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(
        &self,
        request: StartConsultRequest,
    ) -> Result<(CommandContext, ConsultPlan), CliError> {
        let request = ConsultRequest::from_http(request, &self.defaults)?;
        let context = request.context(self.config.as_deref())?;
        let plan = request.plan(&context)?;
        Ok((context, plan))
    }

    fn spec(&self, request: StartRunRequest) -> Result<(CommandContext, RunSpec), CliError> {
        match request {
            StartRunRequest::Consult(request) => {
                let (context, plan) = self.plan(request)?;
                Ok((context, RunSpec::Consult(plan.spec)))
            }
            StartRunRequest::Reflexion(request) => {
                let request = ProgramRequest::from_http(&request, &self.defaults)?;
                let context = request.context(self.config.as_deref())?;
                let spec = request.spec(&context)?;
                Ok((context, RunSpec::Program(spec)))
            }
        }
    }

    async fn open(
        &self,
        request: StartRunRequest,
    ) -> Result<(CommandContext, PreparedRun, NewRun), CliError> {
        let (context, spec) = self.spec(request)?;
        let run = PreparedRun::open(&context, spec).await?;
        // Boxed because the future is large.
        let evidence = Box::pin(run.gather()).await?;
        let new = run.new_run(evidence.as_ref())?;
        Ok((context, run, new))
    }

    async fn begin(&self, order: StartRequest) -> Result<StartOutcome, ApiProblem> {
        let StartRequest { request, owner, once } = order;
        let (context, run, new) = self.open(request).await.map_err(|error| self.problem(error))?;
        let settings = run.spec().settings().clone();
        let new = NewRun { owner, cap: settings.budget_micro_usd, ..new };
        let (run_id, spec) = (new.run_id.clone(), new.spec.clone());
        // Lock before the run exists, so no other process can execute it first.
        let lock = self.local.lock(&run_id).await.map_err(|error| self.problem(unlocked(error)))?;
        let once =
            once.map(|once| IdempotencyKey { key: once.key, request_sha256: once.request_sha256 });
        let terms = AdmissionTerms { once, day_began_at_ms: now_ms().saturating_sub(DAY_MS) };
        match self.local.store.admit_run(new, terms).await? {
            AdmissionDecision::Made => {}
            AdmissionDecision::MadeBefore(before) => {
                // The process that created it may have died before submitting it to the cluster.
                if let Some(restate) = settings.restate {
                    let started = cluster::start(&restate, &spec, &before).await;
                    started.map_err(|error| self.problem(cluster::refused(error)))?;
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
            AdmissionDecision::Refused(excess) => return Err(beyond(excess)),
        }
        match &settings.restate {
            None => {
                let ledger = RunLedger::new(launch::budget(&settings));
                let unattended = BackgroundRun { run, ledger, review: None };
                self.drive(run_id.clone(), lock, context, unattended);
            }
            Some(restate) => {
                let started = cluster::begin(restate, &spec, &*self.local.store, &run_id).await;
                run.shut_down().await;
                started.map_err(|error| self.problem(error))?;
            }
        }
        Ok(StartOutcome::Now(run_id))
    }

    /// Executes a run in a new task.
    fn drive(&self, run_id: RunId, lock: DriverLock, context: CommandContext, run: BackgroundRun) {
        let (store, feed) = (self.local.store.clone(), Arc::clone(&self.feed));
        let (pace, id, spec) = (self.pace, run_id.clone(), run.run.spec().clone());
        let driven = async move {
            let told = id.clone();
            let heard = move |stored: &StoredEvent| {
                run::log(stored, &spec);
                feed.committed(&told, stored);
            };
            // Boxed because the future holds hundreds of concurrent calls.
            let ended = Box::pin(run.drive(&store, &id, pace, heard)).await;
            drop(lock);
            if let Err(error) = &ended {
                let error = error.words();
                tracing::error!(target: "moothall::serve", run_id = %id, error, "run failed");
            }
            let news = ended.as_ref().map_or(Some(RunNotification::Failed), RunNotification::of);
            notify::tell(&context.loaded, &id, news).await;
        };
        // Keeps the run in the trace of the request that started it.
        let task = tokio::spawn(driven.in_current_span());
        let mut driving = self.driving();
        driving.retain(|_, task| !task.is_finished());
        driving.insert(run_id, task);
    }

    async fn allow(&self, row: &RunRow, request: &ResumeRunRequest) -> Result<(), ApiProblem> {
        let budget =
            parse_budget(request.budget_usd.as_deref()).map_err(|error| self.problem(error))?;
        let Some(cap) = budget else { return Ok(()) };
        let day_began_at_ms = now_ms().saturating_sub(DAY_MS);
        let changed = self.local.store.change_cap(&row.run_id, Some(cap), day_began_at_ms).await?;
        changed.map_err(beyond)
    }

    async fn go_on(&self, row: RunRow, request: ResumeRunRequest) -> Result<(), CliError> {
        let budget = parse_budget(request.budget_usd.as_deref())?;
        let more = Budget { usd: budget, tokens: None };
        if let Some(restate) = run_store::restate_of(&row.spec) {
            return cluster::let_go_on(restate, &*self.local.store, &row.run_id, more).await;
        }
        let lock = self.local.lock(&row.run_id).await.map_err(unlocked)?;
        let store = &*self.local.store;
        let spec = launch::stored_spec(&row.spec, more)?;
        if let RunSpec::Edit(_) = spec {
            return Err(goes_on_in_its_folder(&row));
        }
        let context = launch::context(self.config.as_deref(), spec.settings(), Some(spec.model()))?;
        let budget = launch::budget(spec.settings());
        let run = PreparedRun::open(&context, spec).await?;
        let record = RunRecord::read(store, &row.run_id).await.map_err(run_store::broken)?;
        let review = consult::review(store, &record).await?;
        let ledger = RunLedger::resume(budget, row.spent.unwrap_or_default());
        // Before the client learns that the run has resumed, so a later pause request is not
        // removed.
        store.withdraw(&row.run_id, ControlRequest::Pause).await.map_err(run_store::broken)?;
        self.drive(row.run_id, lock, context, BackgroundRun { run, ledger, review });
        Ok(())
    }

    async fn end(&self, row: RunRow) -> Result<(), CliError> {
        let (store, run_id) = (&*self.local.store, &row.run_id);
        if let Some(restate) = run_store::restate_of(&row.spec) {
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
            Err(EngineError::Busy(_)) => {
                store.ask(run_id, ControlRequest::Cancel).await.map_err(run_store::broken)
            }
            Err(error) => Err(broken(error)),
        }
    }
}

impl RunService for LocalRunService {
    fn start(&self, order: StartRequest) -> RunServiceFuture<'_, StartOutcome> {
        Box::pin(self.begin(order))
    }

    fn resume(&self, row: RunRow, request: ResumeRunRequest) -> RunServiceFuture<'_, ()> {
        Box::pin(async move {
            self.allow(&row, &request).await?;
            self.go_on(row, request).await.map_err(|error| self.problem(error))
        })
    }

    fn cancel(&self, row: RunRow) -> RunServiceFuture<'_, ()> {
        Box::pin(async move { self.end(row).await.map_err(|error| self.problem(error)) })
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
                moves::refuse_others(&row)?;
                moves::change(&self.local, &row.run_id, change.map(wanted).unwrap_or_default())
                    .await
            };
            let report = changed.await.and_then(|changed| changed.report());
            report.map_err(|error| self.problem(error))
        })
    }

    fn estimate(&self, request: StartConsultRequest) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let (_, plan) = self.plan(request).map_err(|error| self.problem(error))?;
            Ok(plan.bill.json(plan.cap))
        })
    }

    fn facts(&self, ticker: String, query: FactsQuery) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            let FactsQuery { as_of, allow_stale } = query;
            let found = known::evidence(&context.loaded, offline, &ticker, as_of, allow_stale);
            let evidence = found.await.map_err(|error| self.problem(error))?;
            let sheet = facts::sheet_of(&evidence).map_err(|error| self.problem(error))?;
            Ok(facts::report(&evidence, sheet))
        })
    }

    fn check(&self, request: CheckTextRequest) -> RunServiceFuture<'_, Value> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            let CheckTextRequest { ticker, text, as_of } = request;
            let found = known::evidence(&context.loaded, offline, &ticker, as_of, true);
            let evidence = found.await.map_err(|error| self.problem(error))?;
            // Matching patterns on a long text would block the async runtime.
            let checked = tokio::task::spawn_blocking(move || {
                TextCheckReport::of(&text, &evidence).report("-".as_ref(), &evidence)
            });
            checked.await.map_err(|error| ApiProblem::internal(&error))
        })
    }

    fn tickers(&self, words: String) -> RunServiceFuture<'_, TickerList> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            known::tickers(&context.loaded, offline, &words)
                .await
                .map_err(|error| self.problem(error))
        })
    }

    fn committees(&self) -> Result<CommitteeList, ApiProblem> {
        Ok(known::committees(&self.defaults.committees))
    }

    fn settings(&self) -> RunServiceFuture<'_, ServerSettings> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.is_some();
            Ok(known::settings(
                &context,
                self.defaults.model.as_ref(),
                offline,
                self.pace,
                &self.causes,
            ))
        })
    }

    fn doctor(&self) -> RunServiceFuture<'_, DoctorResponse> {
        Box::pin(async move {
            let found = self.probing.ask(self.config.clone()).await;
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
            let driving = std::mem::take(&mut *self.driving());
            for (run_id, _) in driving.iter().filter(|(_, task)| !task.is_finished()) {
                // A run that has just ended may refuse the request.
                let _ = self.local.store.ask(run_id, ControlRequest::Pause).await;
            }
            let until = tokio::time::Instant::now() + PATIENCE;
            for (_, task) in driving {
                let abort = task.abort_handle();
                if tokio::time::timeout_at(until, task).await.is_err() {
                    abort.abort();
                }
            }
        })
    }
}

/// Converts a request to change moves, with its author.
fn wanted((change, by): (EditMovesRequest, String)) -> moves::MoveEditRequest {
    let said = |what, seal| moves::MoveEditRequest {
        changes: vec![(ReviewChange { by, at_ms: now_ms(), what }, seal)],
        undo: None,
    };
    match change {
        EditMovesRequest::Undo { seal } => moves::MoveEditRequest {
            changes: Vec::new(),
            undo: Some(moves::UndoRequest { seen: seal }),
        },
        EditMovesRequest::Veto { move_id, why, seal } => {
            said(ReviewAction::Veto { move_id, why: why.trim().to_owned() }, seal)
        }
        EditMovesRequest::Edit { move_id, proposal, seal } => {
            said(ReviewAction::Edit { move_id, proposal }, seal)
        }
    }
}

/// The server can only edit in its configured workspaces, and the run may belong to another
/// directory.
fn goes_on_in_its_folder(row: &RunRow) -> CliError {
    let id = run_store::short(&row.run_id);
    CliError::usage("a run that edits files cannot be resumed by a server")
        .with_hint(format!("run `moothall resume {id}` in its directory"))
        .with_code(ErrorCode::ResumeElsewhere)
}
