//! Consultations that an agent starts.
//!
//! The runner creates a run with the same code as `moothall consult`. A separate `moothall resume`
//! executes it, so the run survives an agent that disconnects.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use moothall_core::consult::estimate;
use moothall_core::{MicroUsd, RunId, RunSpec};
use moothall_engine::RunRecord;
use moothall_mcp::{ConsultToolArgs, RunStatusOut, RunStatusToolArgs};
use moothall_server::dto::StartConsultRequest;
use moothall_store::RunState;

use crate::commands::consult::StoredConsultation;
use crate::config;
use crate::error::CliError;
use crate::launch::{ConsultPlan, ConsultRequest, PreparedRun, ServerDefaults};
use crate::run_store::{self, RunStore, open_and_find};

/// The end of the standard error that is shown if a run stops early.
const MAX_ERROR_BYTES: u64 = 2000;

/// Starts consultations within a budget, and reads only those.
#[derive(Debug)]
pub(crate) struct AgentConsultations {
    program: PathBuf,
    config: Option<PathBuf>,
    /// What new consultations may still cost.
    left: Mutex<MicroUsd>,
    processes: Mutex<BTreeMap<RunId, RunProcess>>,
}

/// The process that executes a run.
#[derive(Debug)]
struct RunProcess {
    child: Child,
    errors: File,
}

impl AgentConsultations {
    pub(crate) fn new(program: PathBuf, config: Option<PathBuf>, budget: MicroUsd) -> Self {
        Self { program, config, left: Mutex::new(budget), processes: Mutex::default() }
    }

    /// Starts a consultation and returns without waiting for its end.
    pub(crate) async fn start(&self, args: ConsultToolArgs) -> Result<RunStatusOut, CliError> {
        let request = StartConsultRequest {
            ticker: args.ticker,
            brief: args.brief,
            moves: args.moves,
            rounds: args.rounds,
            verdict: args.verdict,
            budget_usd: args.budget_usd,
            ..StartConsultRequest::default()
        };
        let defaults = ServerDefaults {
            model: None,
            offline: None,
            committees: Vec::new(),
            restate: None,
            allows_feeds: false,
        };
        let request = ConsultRequest::from_http(request, &defaults)?;
        let context = request.context(self.config.as_deref())?;
        let plan = request.plan(&context)?;
        let reserved = self.reserve(&plan)?;
        let ConsultPlan { spec, files, .. } = plan;
        let started = async {
            let run = PreparedRun::open_with(&context, RunSpec::Consult(spec), &files).await?;
            let evidence = Box::pin(run.gather()).await?;
            let new = run.new_run(evidence.as_ref())?;
            run.shut_down().await;
            let local = RunStore::open(&context.loaded).await?;
            let run_id = new.run_id.clone();
            local.store.create_run(new).await.map_err(run_store::store_error)?;
            self.execute(&run_id)?;
            Ok(run_id)
        };
        match Box::pin(started).await {
            Ok(run_id) => self.read(&run_id).await,
            Err(error) => {
                let mut left = lock(&self.left);
                *left = left.saturating_add(reserved);
                Err(error)
            }
        }
    }

    /// The status of a run that this server started.
    pub(crate) async fn status(&self, args: &RunStatusToolArgs) -> Result<RunStatusOut, CliError> {
        let run_id = args.run_id.parse::<RunId>().ok();
        let run_id = run_id.filter(|run_id| lock(&self.processes).contains_key(run_id));
        let run_id = run_id.ok_or_else(|| {
            CliError::usage("unknown run").with_hint(
                "use a run_id that `consult` returned in this session; the user can see all runs with `moothall runs`",
            )
        })?;
        self.read(&run_id).await
    }

    /// Takes the limit of a run from the budget.
    fn reserve(&self, plan: &ConsultPlan) -> Result<MicroUsd, CliError> {
        if plan.estimate.free {
            return Ok(MicroUsd::ZERO);
        }
        let mut left = lock(&self.left);
        let Some(cap) = plan.cap.budget().usd else {
            return Err(CliError::usage("the price of the model is unknown")
                .with_hint("the user can add it to a catalog file, or choose another model"));
        };
        let Some(rest) = left.micros().checked_sub(cap.micros()) else {
            return Err(CliError::usage(format!(
                "the consultation may cost {cap}, but agents may spend only {} more",
                *left
            ))
            .with_hint(
                "reduce `moves`, `rounds` or `budget_usd`, or set `verdict` to `panel`; the user sets the limit with `moothall mcp --budget USD`",
            ));
        };
        *left = MicroUsd::new(rest);
        Ok(cap)
    }

    fn execute(&self, run_id: &RunId) -> Result<(), CliError> {
        let cannot = |error: std::io::Error| {
            CliError::failed("cannot start the consultation").with_source(error)
        };
        let errors = tempfile::tempfile().map_err(cannot)?;
        let mut command = Command::new(&self.program);
        command.args(["resume", "--json", "--color=never"]);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command
            .arg("--")
            .arg(run_id.as_str())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.try_clone().map_err(cannot)?);
        let child = command.spawn().map_err(cannot)?;
        lock(&self.processes).insert(run_id.clone(), RunProcess { child, errors });
        Ok(())
    }

    async fn read(&self, run_id: &RunId) -> Result<RunStatusOut, CliError> {
        let loaded = config::load(self.config.as_deref(), toml::Table::new())?;
        // Before the run is read: a process that ends afterwards does not look interrupted.
        let stopped = self.stopped(run_id);
        let (local, _) = open_and_find(&loaded, run_id.as_str()).await?;
        let record =
            RunRecord::read(&*local.store, run_id).await.map_err(run_store::store_error)?;
        let row = &record.row;
        let id = run_store::short_id(run_id);
        let is_running = match &stopped {
            None => true,
            Some(_) => local.is_driven(row).await?,
        };
        let (state, next) = match row.state {
            RunState::Running if is_running => {
                ("running".to_owned(), "call run_status again, with `wait_s`".to_owned())
            }
            RunState::Running => {
                let why = stopped.unwrap_or_default();
                let next =
                    format!("tell the user to continue it with `moothall resume {id}`; {why}");
                ("interrupted".to_owned(), next)
            }
            RunState::Paused => (
                row.state.to_string(),
                format!(
                    "tell the user; `moothall show {id}` says why, `moothall resume {id}` continues it"
                ),
            ),
            RunState::Finished | RunState::Failed | RunState::Cancelled => {
                (row.state.to_string(), format!("the user can see it with `moothall show {id}`"))
            }
        };
        let memo = (row.state == RunState::Finished)
            .then(|| StoredConsultation::of(&record).map(|consultation| consultation.memo()))
            .transpose()?;
        let expected = record.consult_input().map_or(0, |input| estimate(input, None).all_calls());
        let calls = record.own_journal().count() as u64;
        Ok(RunStatusOut {
            run_id: run_id.to_string(),
            state,
            calls_done: calls,
            calls_expected: u64::from(expected).max(calls),
            spent_usd: row.spent.unwrap_or_default().usd.to_string(),
            verdict: row.outcome.as_ref().map(|outcome| outcome.verdict.to_string()),
            memo,
            next,
        })
    }

    /// The last error of a process that has ended; `None` while it runs.
    fn stopped(&self, run_id: &RunId) -> Option<String> {
        let mut processes = lock(&self.processes);
        let process = processes.get_mut(run_id)?;
        if matches!(process.child.try_wait(), Ok(None)) {
            return None;
        }
        let length = process.errors.metadata().map_or(0, |there| there.len());
        let from = length.saturating_sub(MAX_ERROR_BYTES);
        let mut tail = Vec::new();
        let _ = process.errors.seek(SeekFrom::Start(from));
        let _ = (&process.errors).take(MAX_ERROR_BYTES).read_to_end(&mut tail);
        Some(String::from_utf8_lossy(&tail).trim().to_owned())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
