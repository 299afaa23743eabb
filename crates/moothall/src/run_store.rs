//! The run store as commands use it: opens the store, locks runs, and finds runs by id.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::access::RunOwner;
use moothall_core::model::ModelName;
use moothall_core::{RunId, StoredSpec};
use moothall_engine::{EngineError, RunLock, SlotLock};
use moothall_models::MinuteQuota;
use moothall_store::{
    AccountStore, NewRun, PgLock, PgStore, RunMatch, RunRow, RunState, SqliteStore, Store,
    StoreError, TeamFilter, now_ms,
};

use crate::app_dirs::AppDirs;
use crate::config::LoadedConfig;
use crate::database::DatabaseConfig;
use crate::error::CliError;

/// The database file in the data directory.
pub(crate) const FILE_NAME: &str = "moothall.db";

/// Length of a displayed id: the prefix with the time in milliseconds identifies a run.
const SHORT_ID_CHARS: usize = 13;

/// Checking a lock takes it briefly, so taking a busy lock is retried.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(40);
const LOCK_TRIES: u32 = 3;

const BUSY_HINT: &str = "another process is writing to the store; try again in a moment";

/// The store of runs and the locks on them.
#[derive(Debug)]
pub(crate) struct RunStore {
    pub(crate) store: Arc<dyn Store>,
    backend: StoreBackend,
    locks: PathBuf,
}

#[derive(Debug)]
enum StoreBackend {
    File(Arc<SqliteStore>),
    Database(Arc<PgStore>),
}

/// The right to execute a run. Released when dropped or when the process dies.
#[derive(Debug)]
pub(crate) struct DriverLock {
    _on_this_machine: RunLock,
    /// Set if other machines share the store.
    _on_all_machines: Option<PgLock>,
}

/// One of the concurrency slots shared by all processes that use the same store.
#[derive(Debug)]
pub(crate) enum ConcurrencySlot {
    OnThisMachine(#[expect(dead_code, reason = "held until it is dropped")] SlotLock),
    OnAllMachines(#[expect(dead_code, reason = "held until it is dropped")] PgLock),
}

impl RunStore {
    /// Opens the store, creating it if necessary.
    pub(crate) async fn open(loaded: &LoadedConfig) -> Result<Self, CliError> {
        match DatabaseConfig::of(loaded)? {
            Some(database) => {
                let store = Arc::new(database.open().await?);
                let locks = loaded.locations.folders.state.join("locks");
                Ok(Self { store: store.clone(), backend: StoreBackend::Database(store), locks })
            }
            None => Self::open_file(&loaded.locations.folders).await,
        }
    }

    /// Opens the file in these directories, regardless of the configuration.
    async fn open_file(folders: &AppDirs) -> Result<Self, CliError> {
        let path = folders.data.join(FILE_NAME);
        let store = SqliteStore::open(&path).await.map_err(|error| {
            let opened = CliError::failed("cannot open the run store");
            match &error {
                StoreError::NotADatabase { .. } | StoreError::ForeignDatabase { .. } => opened
                    .with_hint(
                        "move the file away, or set `MOOTHALL_DATA_DIR` to another directory",
                    ),
                StoreError::NewerFormat { .. } => opened,
                StoreError::Busy(_) => opened.with_hint(BUSY_HINT),
                _ => opened.with_hint(
                    "check that you may write to the data directory (see `moothall config path`) and that the disk has space",
                ),
            }
            .with_source(error)
        })?;
        let store = Arc::new(store);
        let locks = folders.state.join("locks");
        Ok(Self { store: store.clone(), backend: StoreBackend::File(store), locks })
    }

    /// Teams and their credentials.
    pub(crate) fn accounts(&self) -> &dyn AccountStore {
        match &self.backend {
            StoreBackend::File(store) => &**store,
            StoreBackend::Database(store) => &**store,
        }
    }

    /// Same as [`Self::accounts`], with shared ownership.
    pub(crate) fn shared_accounts(&self) -> Arc<dyn AccountStore> {
        match &self.backend {
            StoreBackend::File(store) => Arc::<SqliteStore>::clone(store),
            StoreBackend::Database(store) => Arc::<PgStore>::clone(store),
        }
    }

    /// Closes the store. The last process to close the file removes its side files.
    pub(crate) async fn close(&self) {
        match &self.backend {
            StoreBackend::File(store) => store.close().await,
            StoreBackend::Database(store) => store.close().await,
        }
    }

    /// Opens the store if it exists, without creating it.
    pub(crate) async fn open_existing(loaded: &LoadedConfig) -> Result<Option<Self>, CliError> {
        match DatabaseConfig::of(loaded)? {
            Some(_) => Self::open(loaded).await.map(Some),
            None => Self::open_existing_file(&loaded.locations.folders).await,
        }
    }

    /// Opens the file in these directories if it exists, regardless of the configuration.
    pub(crate) async fn open_existing_file(folders: &AppDirs) -> Result<Option<Self>, CliError> {
        match folders.data.join(FILE_NAME).symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // A directory that cannot be read may contain runs.
            _ => Self::open_file(folders).await.map(Some),
        }
    }

    /// Takes the lock to execute a run.
    pub(crate) async fn lock(&self, run_id: &RunId) -> Result<DriverLock, EngineError> {
        let mut tries = 1;
        loop {
            match self.try_lock(run_id).await {
                Err(EngineError::Busy(_)) if tries < LOCK_TRIES => {
                    tries += 1;
                    tokio::time::sleep(LOCK_RETRY_DELAY).await;
                }
                taken => return taken,
            }
        }
    }

    async fn try_lock(&self, run_id: &RunId) -> Result<DriverLock, EngineError> {
        let on_this_machine = RunLock::take(&self.locks, run_id)?;
        let on_all_machines = match &self.backend {
            StoreBackend::File(_) => None,
            StoreBackend::Database(store) => {
                let taken = store.drive(run_id).await?;
                Some(taken.ok_or_else(|| EngineError::Busy(run_id.clone()))?)
            }
        };
        Ok(DriverLock { _on_this_machine: on_this_machine, _on_all_machines: on_all_machines })
    }

    /// Takes one of `width` slots; `None` if all are taken.
    pub(crate) async fn slot(
        &self,
        lane: &str,
        width: u32,
    ) -> Result<Option<ConcurrencySlot>, EngineError> {
        match &self.backend {
            StoreBackend::File(_) => {
                Ok(SlotLock::take(&self.locks, lane, width)?.map(ConcurrencySlot::OnThisMachine))
            }
            StoreBackend::Database(store) => {
                Ok(store.slot(lane, width).await?.map(ConcurrencySlot::OnAllMachines))
            }
        }
    }

    /// Books units of a quota per minute that all processes share, and returns how long to wait
    /// before they may be used. Only a database is shared: with a file, the limits of the process
    /// apply.
    pub(crate) async fn book_quota(
        &self,
        name: &str,
        amount: u32,
        quota: MinuteQuota,
    ) -> Result<Duration, StoreError> {
        match &self.backend {
            StoreBackend::File(_) => Ok(Duration::ZERO),
            StoreBackend::Database(store) => {
                store.book_quota(name, amount, quota.period, quota.burst.get()).await
            }
        }
    }

    /// The runs that are being executed: by a process, or by the workers of a cluster, which own a
    /// run until it pauses or ends.
    pub(crate) async fn driven(&self, rows: &[RunRow]) -> Result<BTreeSet<RunId>, StoreError> {
        let (on_clusters, others): (Vec<&RunRow>, Vec<&RunRow>) =
            rows.iter().partition(|row| restate_url(&row.spec).is_some());
        let ids: Vec<RunId> = others.into_iter().map(|row| row.run_id.clone()).collect();
        let mut driven: BTreeSet<RunId> = match &self.backend {
            StoreBackend::File(_) => {
                ids.into_iter().filter(|id| RunLock::is_held(&self.locks, id)).collect()
            }
            StoreBackend::Database(store) => store.driven(&ids).await?,
        };
        let running = on_clusters.into_iter().filter(|row| row.state == RunState::Running);
        driven.extend(running.map(|row| row.run_id.clone()));
        Ok(driven)
    }

    pub(crate) async fn is_driven(&self, row: &RunRow) -> Result<bool, CliError> {
        let driven = self.driven(std::slice::from_ref(row)).await.map_err(store_error)?;
        Ok(!driven.is_empty())
    }

    /// Removes the lock file of a deleted run. A leftover file is harmless.
    pub(crate) fn forget(&self, run_id: &RunId) {
        let _ = fs_err::remove_file(self.locks.join(format!("{run_id}.lock")));
    }

    /// Finds a run by its id or a unique prefix.
    pub(crate) async fn find(&self, id_or_prefix: &str) -> Result<RunRow, CliError> {
        let id =
            match self.store.find_runs(id_or_prefix, TeamFilter::All).await.map_err(store_error)? {
                RunMatch::One(id) => id,
                RunMatch::None => return Err(no_such_run(id_or_prefix)),
                RunMatch::Several(ids) => {
                    let ids: Vec<&str> = ids.iter().map(RunId::as_str).collect();
                    return Err(CliError::usage(format!("`{id_or_prefix}` matches several runs"))
                        .with_hint(format!("use a longer prefix:\n  {}", ids.join("\n  "))));
                }
            };
        let row = self.store.run(&id).await.map_err(store_error)?;
        row.ok_or_else(|| no_such_run(id_or_prefix))
    }
}

pub(crate) async fn open_and_find(
    loaded: &LoadedConfig,
    id_or_prefix: &str,
) -> Result<(RunStore, RunRow), CliError> {
    let local = RunStore::open_existing(loaded).await?.ok_or_else(|| no_such_run(id_or_prefix))?;
    let row = local.find(id_or_prefix).await?;
    Ok((local, row))
}

/// The error for a command that works only with consultations.
pub(crate) fn not_a_consultation(run_id: &RunId) -> CliError {
    CliError::usage(format!("run {run_id} has no moves because it is not a consultation"))
        .with_hint("choose a consultation; `moothall runs` lists all runs")
}

pub(crate) fn no_such_run(id_or_prefix: &str) -> CliError {
    CliError::usage(format!("no run `{id_or_prefix}`")).with_hint("see `moothall runs`")
}

/// Converts an error of the store.
pub(crate) fn store_error(error: StoreError) -> CliError {
    let failed = CliError::failed("cannot access the run store");
    match &error {
        StoreError::Busy(_) => failed.with_hint(BUSY_HINT),
        StoreError::Unreachable(_) => {
            failed.with_hint("check the database with `moothall doctor`, then try again")
        }
        _ => failed,
    }
    .with_source(error)
}

/// The id prefix shown in lists.
pub(crate) fn short_id(id: &RunId) -> &str {
    id.as_str().get(..SHORT_ID_CHARS).unwrap_or(id.as_str())
}

/// The URL of the Restate cluster that executes a run, if any.
pub(crate) fn restate_url(spec: &StoredSpec) -> Option<&str> {
    spec.read().ok()?.settings().restate.as_deref()
}

/// A new run with a fresh id and the current time.
pub(crate) fn new_run(
    spec: StoredSpec,
    model: &ModelName,
    title: &str,
) -> Result<NewRun, CliError> {
    let run_id = uuid::Uuid::now_v7()
        .to_string()
        .parse()
        .map_err(|error: moothall_core::InvalidId| CliError::failed(error.to_string()))?;
    Ok(NewRun {
        run_id,
        owner: RunOwner::local(),
        cap: None,
        title: title.to_owned(),
        model: model.to_string(),
        spec,
        build: env!("CARGO_PKG_VERSION").to_owned(),
        created_at_ms: now_ms(),
        inherited: Vec::new(),
    })
}
