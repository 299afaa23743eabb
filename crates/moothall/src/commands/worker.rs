//! `moothall worker`: drives runs for a Restate cluster.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_core::{RunId, RunSpec};
use moothall_restate::{Admin, Build, ClusterError, OpenError, OpenFuture, Program, Worker};
use moothall_store::RunRow;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OnceCell;

use crate::args::{Global, WorkerArgs};
use crate::error::{CliError, Exit};
use crate::launch::cluster::refused;
use crate::launch::{self, PreparedRun, WorkerRun};
use crate::local::Local;
use crate::pace::Pace;
use crate::terminal::{self, DIM};
use crate::turnstile::SharedTurnstile;
use crate::{config, logging};

/// How long answers that are under way are waited for at the end. They are paid for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs whose models and walls are kept at hand; the oldest makes room for a new one.
const AT_HAND: usize = 64;

pub(super) fn run(global: &Global, args: &WorkerArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| CliError::failed("the async runtime cannot start").with_source(error))?;
    refuse_unsigned_requests(args)?;
    runtime.block_on(async {
        let local = Arc::new(Local::open(&loaded).await?);
        let program = Arc::new(Runs {
            config: global.config.clone(),
            turnstile: Arc::new(SharedTurnstile::new(Arc::clone(&local))),
            local,
            pace: Pace::of(args.pace),
            ready: Mutex::default(),
        });
        let build = match &args.build {
            Some(build) => build.clone(),
            None => build_of_this_program()?,
        };
        let worker = Worker::new(program.clone()).of_build(build.clone());
        let listener = Worker::listen(args.listen).map_err(|error| {
            CliError::failed(format!("cannot listen on {}", args.listen)).with_source(error)
        })?;
        let address = listener.local_addr().unwrap_or(args.listen);
        let url = args.url.clone().unwrap_or_else(|| format!("http://{address}"));
        let leave = leave(worker.clone())?;
        let serving = worker.serve(listener, args.identity_key.as_deref(), leave);
        let announcing = async {
            if let Some(admin) = &args.register {
                let admin = Admin::new(admin).map_err(refused)?;
                admin.register(&url, &build).await.map_err(unregistered)?;
            }
            terminal::print(&format!("{url}\n"))?;
            anyhow::Ok(())
        };
        let mut serving = std::pin::pin!(serving);
        // Restate asks back while it is told, so both go on together.
        let served = tokio::select! {
            served = &mut serving => served,
            announced = announcing => {
                announced?;
                serving.await
            }
        };
        // Steps that were not waited for still need the store, and Restate hears of it if they fail: it
        // gives them to others.
        if !worker.is_busy() {
            program.shut_down().await;
        }
        served.map_err(|words| {
            CliError::usage("`--identity-key` is no public key of a Restate")
                .with_hint(format!("its log shows it, as publickeyv1_…; {words}"))
        })?;
        Ok(Exit::Fine)
    })
}

/// Unsigned requests from other machines could make this worker spend its user's money.
fn refuse_unsigned_requests(args: &WorkerArgs) -> Result<(), CliError> {
    if args.listen.ip().is_loopback() || args.identity_key.is_some() {
        return Ok(());
    }
    let message =
        format!("{} can be reached from other machines, and requests are not signed", args.listen);
    Err(CliError::usage(message).with_hint(
        "pass `--identity-key` with the public key of your Restate cluster, or listen on 127.0.0.1",
    ))
}

fn unregistered(error: ClusterError) -> CliError {
    let mut refused = refused(error);
    refused.message = "the cluster does not take this worker".to_owned();
    refused
}

/// Ends when somebody asks this process to, and its steps are done.
fn leave(worker: Worker) -> Result<impl Future<Output = ()>, CliError> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| CliError::failed("signals cannot be listened to").with_source(error))
    };
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        let words = "ending: steps under way are waited for · again leaves at once";
        terminal::note(&format!("{DIM}{words}{DIM:#}\n"));
        tokio::select! {
            () = worker.leave(PATIENCE) => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// The beginning of the SHA-256 of this very program: other bytes are another build.
pub(super) fn build_of_this_program() -> Result<Build, CliError> {
    let failed =
        |error: std::io::Error| CliError::failed("this program cannot be read").with_source(error);
    let mut program =
        fs_err::File::open(std::env::current_exe().map_err(failed)?).map_err(failed)?;
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    let mut some = vec![0; 1 << 20];
    loop {
        match program.read(&mut some).map_err(failed)? {
            0 => break,
            read => hash.update(some.get(..read).unwrap_or_default()),
        }
    }
    let hash = hash.finish();
    let name: String = hash.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    name.parse().map_err(|error| CliError::failed("this program has no name").with_source(error))
}

/// Finds what runs need on this machine.
#[derive(Debug)]
struct Runs {
    config: Option<PathBuf>,
    local: Arc<Local>,
    /// What providers allow all workers together.
    turnstile: Arc<SharedTurnstile>,
    pace: Pace,
    /// By run, so that the debates of one run share connections, limits and sandboxes. Ids of runs
    /// begin with their time.
    ready: Mutex<BTreeMap<RunId, Place>>,
}

/// What one run needs, once it is found. Runs do not wait for what others need.
type Place = Arc<OnceCell<Arc<WorkerRun>>>;

impl Program for Runs {
    fn open<'a>(&'a self, run_id: &'a RunId) -> OpenFuture<'a> {
        Box::pin(async move {
            let row = self.local.store.run(run_id).await;
            let row = row.map_err(|error| again(&error))?.ok_or_else(|| OpenError {
                words: "the store does not know this run; all workers must use the same".to_owned(),
                is_retryable: false,
            })?;
            let run = self.prepared(&row).await.map_err(|error| again(&error.words()))?;
            run.opened().map_err(|error| again(&error.words()))
        })
    }
}

/// Whatever is missing here may be there later, or on another machine.
fn again(why: &impl ToString) -> OpenError {
    OpenError { words: why.to_string(), is_retryable: true }
}

impl Runs {
    async fn prepared(&self, row: &RunRow) -> Result<Arc<WorkerRun>, CliError> {
        let place = self.place(&row.run_id);
        place.get_or_try_init(|| self.prepare(row)).await.cloned()
    }

    async fn prepare(&self, row: &RunRow) -> Result<Arc<WorkerRun>, CliError> {
        let spec = launch::read_spec(&row.spec)?.clone();
        if let RunSpec::Edit(_) = spec {
            return Err(CliError::failed("workers do not drive edits"));
        }
        let mut context =
            launch::context(self.config.as_deref(), spec.settings(), Some(spec.model()))?;
        context.turnstile = Some(self.turnstile.clone());
        Ok(Arc::new(WorkerRun {
            run: PreparedRun::open(&context, spec).await?,
            store: Arc::clone(&self.local.store),
            run_id: row.run_id.clone(),
            pace: self.pace,
        }))
    }

    /// The place of a run among those that are at hand.
    fn place(&self, run_id: &RunId) -> Place {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::clone(ready.entry(run_id.clone()).or_default());
        if ready.len() > AT_HAND
            && let Some((_, oldest)) = ready.pop_first()
            && let Some(oldest) = oldest.get().cloned()
        {
            // Whoever still uses it keeps it.
            tokio::spawn(async move { oldest.run.shut_down().await });
        }
        place
    }

    async fn shut_down(&self) {
        let ready = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *ready)
        };
        for ready in ready.into_values() {
            if let Some(ready) = ready.get() {
                ready.run.shut_down().await;
            }
        }
        self.local.close().await;
    }
}
