//! The program behind the server: configuration, keys, models, sandboxes, and the runs it drives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::consult::{Change, What};
use moothall_core::report::Paper;
use moothall_core::report::document::Document;
use moothall_core::{RunId, RunSpec};
use moothall_engine::{EngineError, RunRecord, cancel};
use moothall_models::{Budget, Ledger};
use moothall_server::wire::{
    ChangeMoves, CheckText, CommitteeList, Doctor, FactsQuery, ResumeRun, Settings, StartConsult,
    StartRun, TickerList,
};
use moothall_server::{Begun, Desk, DeskFuture, Feed, Order, Problem, StatusCode};
use moothall_store::{Admission, NewRun, Once, RunRow, StoredEvent, Terms, Wish, now_ms};
use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::facts as known;
use super::probing::Probing;
use super::telling::{Causes, beyond};
use crate::commands::check::Checked;
use crate::commands::found_run::unlocked;
use crate::commands::{consult, facts, moves, run};
use crate::context::Context;
use crate::error::CliError;
use crate::launch::{
    self, ConsultPlan, ConsultRequest, PreparedRun, ProgramRequest, ServerDefaults, Unattended,
    cluster, parse_budget,
};
use crate::local::{self, DriverLock, Local};
use crate::notice::{self, News};
use crate::pace::Pace;
use crate::pdf_helper;

/// How long answers that are under way are waited for at the end. They are paid for.
const PATIENCE: Duration = Duration::from_secs(30);

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// See [`Desk`].
pub(super) struct ProgramDesk {
    config: Option<PathBuf>,
    local: Arc<Local>,
    feed: Arc<Feed>,
    defaults: ServerDefaults,
    pace: Pace,
    causes: Causes,
    driving: Mutex<BTreeMap<RunId, JoinHandle<()>>>,
    probing: Probing,
}

impl std::fmt::Debug for ProgramDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramDesk")
            .field("driving", &self.driving().keys())
            .finish_non_exhaustive()
    }
}

impl ProgramDesk {
    pub(super) fn new(
        config: Option<PathBuf>,
        local: Arc<Local>,
        feed: Arc<Feed>,
        defaults: ServerDefaults,
        pace: Pace,
        causes: Causes,
    ) -> Self {
        let (driving, probing) = (Mutex::default(), Probing::default());
        Self { config, local, feed, defaults, pace, causes, driving, probing }
    }

    fn problem(&self, error: CliError) -> Problem {
        self.causes.problem(&error)
    }

    /// Configuration and keys as they are now: whoever sets a key need not start the server again.
    fn context(&self, flags: toml::Table) -> Result<Context, CliError> {
        Context::load(self.config.as_deref(), flags)
    }

    fn driving(&self) -> MutexGuard<'_, BTreeMap<RunId, JoinHandle<()>>> {
        self.driving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self, request: StartConsult) -> Result<(Context, ConsultPlan), CliError> {
        let request = ConsultRequest::from_http(request, &self.defaults)?;
        let context = request.context(self.config.as_deref())?;
        let plan = request.plan(&context)?;
        Ok((context, plan))
    }

    fn spec(&self, request: StartRun) -> Result<(Context, RunSpec), CliError> {
        match request {
            StartRun::Consult(request) => {
                let (context, plan) = self.plan(request)?;
                Ok((context, RunSpec::Consult(plan.spec)))
            }
            StartRun::Reflexion(request) => {
                let request = ProgramRequest::from_http(&request, &self.defaults)?;
                let context = request.context(self.config.as_deref())?;
                let spec = request.spec(&context)?;
                Ok((context, RunSpec::Program(spec)))
            }
        }
    }

    async fn open(&self, request: StartRun) -> Result<(Context, PreparedRun, NewRun), CliError> {
        let (context, spec) = self.spec(request)?;
        let run = PreparedRun::open(&context, spec).await?;
        // Boxed: a gathering under way is large.
        let evidence = Box::pin(run.gather()).await?;
        let new = run.new_run(evidence.as_ref())?;
        Ok((context, run, new))
    }

    async fn begin(&self, order: Order) -> Result<Begun, Problem> {
        let Order { request, owner, once } = order;
        let (context, run, new) = self.open(request).await.map_err(|error| self.problem(error))?;
        let settings = run.spec().settings().clone();
        let new = NewRun { owner, cap: settings.budget_micro_usd, ..new };
        let (run_id, spec) = (new.run_id.clone(), new.spec.clone());
        // Before the run exists: nobody else may drive it first.
        let lock = self.local.lock(&run_id).await.map_err(|error| self.problem(unlocked(error)))?;
        let once = once.map(|once| Once { key: once.key, request_sha256: once.request_sha256 });
        let terms = Terms { once, day_began_at_ms: now_ms().saturating_sub(DAY_MS) };
        match self.local.store.admit_run(new, terms).await? {
            Admission::Made => {}
            Admission::MadeBefore(before) => {
                // Whoever made it may have died before it was given to the cluster.
                if let Some(restate) = settings.restate {
                    let started = cluster::start(&restate, &spec, &before).await;
                    started.map_err(|error| self.problem(cluster::refused(error)))?;
                }
                return Ok(Begun::Before(before));
            }
            Admission::OtherRequest => {
                return Err(Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    ErrorCode::IdempotencyKeyReused,
                    "this `Idempotency-Key` came with another request before",
                )
                .with_hint("use a new key for a new request"));
            }
            Admission::Refused(excess) => return Err(beyond(excess)),
        }
        match &settings.restate {
            None => {
                let ledger = Ledger::new(launch::budget(&settings));
                let unattended = Unattended { run, ledger, review: None };
                self.drive(run_id.clone(), lock, context, unattended);
            }
            Some(restate) => {
                let started = cluster::begin(restate, &spec, &*self.local.store, &run_id).await;
                run.shut_down().await;
                started.map_err(|error| self.problem(error))?;
            }
        }
        Ok(Begun::Now(run_id))
    }

    /// Drives a run in a task of its own.
    fn drive(&self, run_id: RunId, lock: DriverLock, context: Context, run: Unattended) {
        let (store, feed) = (self.local.store.clone(), Arc::clone(&self.feed));
        let (pace, id, spec) = (self.pace, run_id.clone(), run.run.spec().clone());
        let driven = async move {
            let told = id.clone();
            let heard = move |stored: &StoredEvent| {
                run::log(stored, &spec);
                feed.committed(&told, stored);
            };
            // Boxed: hundreds of calls under way are large.
            let ended = Box::pin(run.drive(&store, &id, pace, heard)).await;
            drop(lock);
            if let Err(error) = &ended {
                let error = error.words();
                tracing::error!(target: "moothall::serve", run_id = %id, error, "a run broke off");
            }
            let news = ended.as_ref().map_or(Some(News::Failed), News::of);
            notice::tell(&context.loaded, &id, news).await;
        };
        // Whoever traces a request sees what it set going.
        let task = tokio::spawn(driven.in_current_span());
        let mut driving = self.driving();
        driving.retain(|_, task| !task.is_finished());
        driving.insert(run_id, task);
    }

    async fn allow(&self, row: &RunRow, request: &ResumeRun) -> Result<(), Problem> {
        let budget =
            parse_budget(request.budget_usd.as_deref()).map_err(|error| self.problem(error))?;
        let Some(cap) = budget else { return Ok(()) };
        let day_began_at_ms = now_ms().saturating_sub(DAY_MS);
        let changed = self.local.store.change_cap(&row.run_id, Some(cap), day_began_at_ms).await?;
        changed.map_err(beyond)
    }

    async fn go_on(&self, row: RunRow, request: ResumeRun) -> Result<(), CliError> {
        let budget = parse_budget(request.budget_usd.as_deref())?;
        let more = Budget { usd: budget, tokens: None };
        if let Some(restate) = local::restate_of(&row.spec) {
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
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        let review = consult::review(store, &record).await?;
        let ledger = Ledger::resume(budget, row.spent.unwrap_or_default());
        // Before anybody hears that it goes on: a pause that they ask for then is not this one.
        store.withdraw(&row.run_id, Wish::Pause).await.map_err(local::broken)?;
        self.drive(row.run_id, lock, context, Unattended { run, ledger, review });
        Ok(())
    }

    async fn end(&self, row: RunRow) -> Result<(), CliError> {
        let (store, run_id) = (&*self.local.store, &row.run_id);
        if let Some(restate) = local::restate_of(&row.spec) {
            return cluster::cancel(restate, store, run_id).await;
        }
        let broken =
            |error: EngineError| CliError::failed("the run cannot be cancelled").with_source(error);
        match self.local.lock(run_id).await {
            // Nobody drives it, so nobody would hear a wish.
            Ok(_lock) => {
                for stored in cancel(store, run_id, None).await.map_err(broken)? {
                    self.feed.committed(run_id, &stored);
                }
                Ok(())
            }
            Err(EngineError::Busy(_)) => {
                store.ask(run_id, Wish::Cancel).await.map_err(local::broken)
            }
            Err(error) => Err(broken(error)),
        }
    }
}

impl Desk for ProgramDesk {
    fn start(&self, order: Order) -> DeskFuture<'_, Begun> {
        Box::pin(self.begin(order))
    }

    fn resume(&self, row: RunRow, request: ResumeRun) -> DeskFuture<'_, ()> {
        Box::pin(async move {
            self.allow(&row, &request).await?;
            self.go_on(row, request).await.map_err(|error| self.problem(error))
        })
    }

    fn cancel(&self, row: RunRow) -> DeskFuture<'_, ()> {
        Box::pin(async move { self.end(row).await.map_err(|error| self.problem(error)) })
    }

    fn driven(&self, rows: Vec<RunRow>) -> DeskFuture<'_, BTreeSet<RunId>> {
        Box::pin(async move { Ok(self.local.driven(&rows).await?) })
    }

    fn moves(&self, row: RunRow, change: Option<(ChangeMoves, String)>) -> DeskFuture<'_, Value> {
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

    fn estimate(&self, request: StartConsult) -> DeskFuture<'_, Value> {
        Box::pin(async move {
            let (_, plan) = self.plan(request).map_err(|error| self.problem(error))?;
            Ok(plan.bill.json(plan.cap))
        })
    }

    fn facts(&self, ticker: String, query: FactsQuery) -> DeskFuture<'_, Value> {
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

    fn check(&self, request: CheckText) -> DeskFuture<'_, Value> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            let CheckText { ticker, text, as_of } = request;
            let found = known::evidence(&context.loaded, offline, &ticker, as_of, true);
            let evidence = found.await.map_err(|error| self.problem(error))?;
            // Patterns over a long text take their time, and others are answered meanwhile.
            let checked = tokio::task::spawn_blocking(move || {
                Checked::of(&text, &evidence).report("-".as_ref(), &evidence)
            });
            checked.await.map_err(|error| Problem::internal(&error))
        })
    }

    fn tickers(&self, words: String) -> DeskFuture<'_, TickerList> {
        Box::pin(async move {
            let context = self.context(toml::Table::new()).map_err(|error| self.problem(error))?;
            let offline = self.defaults.offline.as_deref();
            known::tickers(&context.loaded, offline, &words)
                .await
                .map_err(|error| self.problem(error))
        })
    }

    fn committees(&self) -> Result<CommitteeList, Problem> {
        Ok(known::committees(&self.defaults.committees))
    }

    fn settings(&self) -> DeskFuture<'_, Settings> {
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

    fn doctor(&self) -> DeskFuture<'_, Doctor> {
        Box::pin(async move {
            let found = self.probing.ask(self.config.clone()).await;
            found.map_err(|error| self.problem(error))
        })
    }

    fn pdf(&self, memo: Document) -> DeskFuture<'_, Vec<u8>> {
        Box::pin(async move {
            let pdf = pdf_helper::typeset(&memo, Paper::A4).await;
            pdf.map_err(|error| self.problem(error))
        })
    }

    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let driving = std::mem::take(&mut *self.driving());
            for (run_id, _) in driving.iter().filter(|(_, task)| !task.is_finished()) {
                // One that has just ended needs no wish.
                let _ = self.local.store.ask(run_id, Wish::Pause).await;
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

/// What a request wants about moves, and who.
fn wanted((change, by): (ChangeMoves, String)) -> moves::Wanted {
    let said = |what, seal| moves::Wanted {
        changes: vec![(Change { by, at_ms: now_ms(), what }, seal)],
        undo: None,
    };
    match change {
        ChangeMoves::Undo { seal } => {
            moves::Wanted { changes: Vec::new(), undo: Some(moves::Undo { seen: seal }) }
        }
        ChangeMoves::Veto { move_id, why, seal } => {
            said(What::Veto { move_id, why: why.trim().to_owned() }, seal)
        }
        ChangeMoves::Edit { move_id, proposal, seal } => {
            said(What::Edit { move_id, proposal }, seal)
        }
    }
}

/// A server has no folder to edit in but those that it was given, and the run may be of another.
fn goes_on_in_its_folder(row: &RunRow) -> CliError {
    let id = local::short(&row.run_id);
    CliError::usage("a run that edits files goes on where they are, not in a server")
        .with_hint(format!("in its folder: `moothall resume {id}`"))
        .with_code(ErrorCode::ResumeElsewhere)
}
