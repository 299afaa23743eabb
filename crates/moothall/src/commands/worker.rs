//! `moothall worker`: drives runs for a Restate cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::RunId;
use moothall_core::consult::Consult;
use moothall_restate::{Admin, Cluster, OpenError, OpenFuture, Opened, Program, Worker};
use moothall_store::RunRow;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

use super::consult::{Kept, Readied, refused};
use crate::args::{Global, WorkerArgs};
use crate::error::{CliError, Exit};
use crate::local::Local;
use crate::pace::Pace;
use crate::terminal::{self, DIM};
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
    runtime.block_on(async {
        let cluster = Cluster::new(&args.restate).map_err(refused)?;
        let local = Local::open(&loaded).await?;
        let program = Arc::new(Consultations {
            config: global.config.clone(),
            local,
            pace: Pace::of(args.pace),
            ready: Mutex::default(),
        });
        let worker = Worker::new(program.clone(), cluster);
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
                admin.register(&url).await.map_err(refused)?;
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
        program.shut_down().await;
        served.map_err(|words| {
            CliError::usage("`--identity-key` is no public key of a Restate")
                .with_hint(format!("its log shows it, as publickeyv1_…; {words}"))
        })?;
        Ok(Exit::Fine)
    })
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

/// Finds what consultations need on this machine.
#[derive(Debug)]
struct Consultations {
    config: Option<PathBuf>,
    local: Local,
    pace: Pace,
    /// By run, so that the debates of one run share connections, limits and sandboxes. Ids of runs
    /// begin with their time.
    ready: Mutex<BTreeMap<RunId, Arc<Readied>>>,
}

impl Program for Consultations {
    fn open<'a>(&'a self, run_id: &'a RunId) -> OpenFuture<'a> {
        Box::pin(async move {
            let row = self.local.store.run(run_id).await;
            let row = row.map_err(|error| again(&error))?.ok_or_else(|| OpenError {
                words: "the store does not know this run; all workers must use the same".to_owned(),
                is_retryable: false,
            })?;
            let ready = self.readied(&row).await.map_err(|error| again(&error.words()))?;
            let workflow = ready.workflow().map_err(|error| again(&error.words()))?;
            Ok(Opened {
                store: self.local.store.clone(),
                workflow: Box::new(workflow),
                walls: ready.walls(),
                budget: ready.budget(),
                parallel_children: ready.parallel_moves(),
                hands: ready,
            })
        })
    }
}

/// Whatever is missing here may be there later, or on another machine.
fn again(why: &impl ToString) -> OpenError {
    OpenError { words: why.to_string(), is_retryable: true }
}

impl Consultations {
    async fn readied(&self, row: &RunRow) -> Result<Arc<Readied>, CliError> {
        let mut ready = self.ready.lock().await;
        if let Some(found) = ready.get(&row.run_id) {
            return Ok(Arc::clone(found));
        }
        if row.workflow != Consult::NAME {
            let words = format!("a `{}` is not driven by workers", row.workflow);
            return Err(CliError::failed(words));
        }
        let kept = Kept::read(&row.input)?;
        // Boxed: looking for sandboxes is large.
        let found = Box::pin(Readied::find(self.config.as_deref(), kept, self.pace)).await?;
        let found = Arc::new(found);
        ready.insert(row.run_id.clone(), Arc::clone(&found));
        if ready.len() > AT_HAND
            && let Some((_, oldest)) = ready.pop_first()
        {
            // Whoever still uses it keeps it.
            tokio::spawn(async move { oldest.shut_down().await });
        }
        Ok(found)
    }

    async fn shut_down(&self) {
        for ready in std::mem::take(&mut *self.ready.lock().await).into_values() {
            ready.shut_down().await;
        }
        self.local.close().await;
    }
}
