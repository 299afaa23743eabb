//! `moothall worker`: executes runs for a Restate cluster.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_core::{RunId, RunSpec};
use moothall_restate::{
    ClusterError, OpenError, OpenFuture, RestateAdmin, RestateWorker, WorkerBuild, WorkerHost,
};
use moothall_store::RunRow;
use tokio::runtime::Builder as RuntimeBuilder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OnceCell;

use super::build_runtime;
use crate::args::{GlobalArgs, WorkerArgs};
use crate::demo_delay::DemoDelay;
use crate::error::{CliError, CliExit};
use crate::launch::cluster::cluster_error;
use crate::launch::{self, PreparedRun, WorkerRun};
use crate::run_store::RunStore;
use crate::store_limiter::StoreLimiter;
use crate::terminal::{self, DIM};
use crate::{config, logging, process_resources};

/// How long shutdown waits for calls in progress, because they are already paid for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of runs whose models and sandboxes are kept open; the oldest is evicted.
const MAX_CACHED_RUNS: usize = 64;

pub(crate) fn run(global: &GlobalArgs, args: &WorkerArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let runtime = build_runtime(&mut RuntimeBuilder::new_multi_thread())?;
    refuse_unsigned_requests(args)?;
    process_resources::keep_sandboxes(runtime.handle().clone());
    runtime.block_on(async {
        let local = Arc::new(RunStore::open(&loaded).await?);
        let program = Arc::new(WorkerRunCache {
            config: global.config.clone(),
            limiter: Arc::new(StoreLimiter::new(Arc::clone(&local))),
            local,
            delay: DemoDelay::of(args.pace),
            runs: Mutex::default(),
        });
        let build = match &args.build {
            Some(build) => build.clone(),
            None => build_of_this_program()?,
        };
        let worker = RestateWorker::new(program.clone()).of_build(build.clone());
        let listener = RestateWorker::listen(args.listen).map_err(|error| {
            CliError::failed(format!("cannot listen on {}", args.listen))
                .with_source(error)
                .with_hint("choose another address; `--listen 127.0.0.1:0` picks a free port")
        })?;
        let address = listener.local_addr().unwrap_or(args.listen);
        let url = args.url.clone().unwrap_or_else(|| format!("http://{address}"));
        let leave = shutdown_signal(worker.clone())?;
        let serving = worker.serve(listener, args.identity_key.as_deref(), leave);
        let registration = async {
            if let Some(admin) = &args.register {
                let admin = RestateAdmin::new(admin).map_err(cluster_error)?;
                admin.register(&url, &build).await.map_err(registration_error)?;
            }
            terminal::print(&format!("{url}\n"))?;
            anyhow::Ok(())
        };
        let mut serving = std::pin::pin!(serving);
        // Restate calls the worker during registration, so both must run concurrently.
        let (registered, served) = tokio::select! {
            served = &mut serving => (Ok(()), served),
            registered = registration => match registered {
                Ok(()) => (Ok(()), serving.await),
                Err(error) => (Err(error), Ok(())),
            },
        };
        // Steps still running after the timeout need the store. If they fail, Restate gives them to
        // other workers.
        if !worker.is_busy() {
            program.shut_down().await;
        }
        process_resources::end_kept_sandboxes().await;
        registered?;
        served.map_err(|words| {
            CliError::usage("invalid `--identity-key`: not a Restate public key")
                .with_hint(format!("the log of Restate shows its key, as publickeyv1_…; {words}"))
        })?;
        Ok(CliExit::Fine)
    })
}

/// Unsigned requests from other machines could make this worker spend its user's money.
fn refuse_unsigned_requests(args: &WorkerArgs) -> Result<(), CliError> {
    if args.listen.ip().is_loopback() || args.identity_key.is_some() {
        return Ok(());
    }
    let message =
        format!("{} is reachable from other machines, but requests are not signed", args.listen);
    Err(CliError::usage(message).with_hint(
        "pass `--identity-key` with the public key of your Restate cluster, or listen on 127.0.0.1",
    ))
}

fn registration_error(error: ClusterError) -> CliError {
    let mut rejected = cluster_error(error);
    rejected.message = "the cluster rejected this worker".to_owned();
    rejected
}

/// Completes after SIGINT or SIGTERM, when the steps in progress are finished. A second signal
/// skips the wait.
fn shutdown_signal(worker: RestateWorker) -> Result<impl Future<Output = ()>, CliError> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| CliError::failed("cannot listen for signals").with_source(error))
    };
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        let message =
            "stopping: waiting for steps in progress · press Ctrl-C again to exit immediately";
        terminal::note(&format!("{DIM}{message}{DIM:#}\n"));
        tokio::select! {
            () = worker.shut_down(SHUTDOWN_TIMEOUT) => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// A prefix of the SHA-256 of this executable identifies the build.
pub(crate) fn build_of_this_program() -> Result<WorkerBuild, CliError> {
    let failed = |error: std::io::Error| {
        CliError::failed("cannot read the executable of this program").with_source(error)
    };
    let mut program =
        fs_err::File::open(std::env::current_exe().map_err(failed)?).map_err(failed)?;
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match program.read(&mut buffer).map_err(failed)? {
            0 => break,
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    let hash = hash.finish();
    let name: String = hash.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    name.parse().map_err(|error| {
        CliError::failed("cannot derive a build name for this program").with_source(error)
    })
}

/// Prepares runs with the models and sandboxes of this machine.
#[derive(Debug)]
struct WorkerRunCache {
    config: Option<PathBuf>,
    local: Arc<RunStore>,
    /// Provider limits shared by all workers.
    limiter: Arc<StoreLimiter>,
    delay: DemoDelay,
    /// Keyed by run, so the debates of one run share connections, limits and sandboxes. Run
    /// ids sort by creation time.
    runs: Mutex<BTreeMap<RunId, Place>>,
}

/// Initialized once per run. Separate cells, so that runs do not wait for each other.
type Place = Arc<OnceCell<Arc<WorkerRun>>>;

impl WorkerHost for WorkerRunCache {
    fn open<'a>(&'a self, run_id: &'a RunId) -> OpenFuture<'a> {
        Box::pin(async move {
            let row = self.local.store.run(run_id).await;
            let row = row.map_err(|error| retryable(&error))?.ok_or_else(|| OpenError {
                words: "run not found in the store; all workers must use the same store".to_owned(),
                is_retryable: false,
            })?;
            let run =
                self.prepared(&row).await.map_err(|error| retryable(&error.full_message()))?;
            run.opened().map_err(|error| retryable(&error.full_message()))
        })
    }
}

/// Retryable: what is missing may be available later, or on another machine.
fn retryable(why: &impl ToString) -> OpenError {
    OpenError { words: why.to_string(), is_retryable: true }
}

impl WorkerRunCache {
    async fn prepared(&self, row: &RunRow) -> Result<Arc<WorkerRun>, CliError> {
        let cell = self.run_cell(&row.run_id);
        cell.get_or_try_init(|| self.prepare(row)).await.cloned()
    }

    async fn prepare(&self, row: &RunRow) -> Result<Arc<WorkerRun>, CliError> {
        let spec = launch::read_spec(&row.spec)?.clone();
        if let RunSpec::Edit(_) = spec {
            return Err(CliError::failed("workers cannot execute runs of `moothall edit`"));
        }
        let mut context =
            launch::context(self.config.as_deref(), spec.settings(), Some(spec.model()))?;
        context.limiter = Some(self.limiter.clone());
        let run = PreparedRun::open_stored(&context, spec, &*self.local.store, &row.run_id).await?;
        // Consultations reach their debates much later, and perhaps on another worker.
        if let RunSpec::Program(_) = run.spec() {
            run.warm_up();
        }
        Ok(Arc::new(WorkerRun {
            run,
            store: Arc::clone(&self.local.store),
            run_id: row.run_id.clone(),
            delay: self.delay,
        }))
    }

    /// Returns the cell of a run, and evicts the oldest one if there are too many.
    fn run_cell(&self, run_id: &RunId) -> Place {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = Arc::clone(runs.entry(run_id.clone()).or_default());
        if runs.len() > MAX_CACHED_RUNS
            && let Some((_, oldest)) = runs.pop_first()
            && let Some(oldest) = oldest.get().cloned()
        {
            // Current users keep their own reference.
            tokio::spawn(async move { oldest.run.shut_down().await });
        }
        cell
    }

    async fn shut_down(&self) {
        let runs = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *runs)
        };
        for cell in runs.into_values() {
            if let Some(run) = cell.get() {
                run.run.shut_down().await;
            }
        }
        self.local.close().await;
    }
}
