//! The local engine as commands use it: where runs are kept, who drives them, and which one a
//! person means.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::access::Owner;
use moothall_core::model::ModelName;
use moothall_core::{RunId, StoredSpec};
use moothall_engine::{EngineError, RunLock, SlotLock};
use moothall_store::{
    Accounts, NewRun, PgLock, PgStore, RunMatch, RunRow, RunState, SqliteStore, Store, StoreError,
    Teams, now_ms,
};

use crate::config::Loaded;
use crate::database::Database;
use crate::error::CliError;
use crate::folders::Folders;

/// The file below the data folder that holds all runs.
pub(crate) const FILE_NAME: &str = "moothall.db";

/// The first characters of an id that tell it from others: the time in milliseconds.
const SHORT_ID_CHARS: usize = 13;

/// A look at a lock holds it for a moment, so a lock that is held is tried again.
const LOCK_AGAIN: Duration = Duration::from_millis(40);
const LOCK_TRIES: u32 = 3;

/// Where runs are kept, and who drives them.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) store: Arc<dyn Store>,
    kept: Kept,
    locks: PathBuf,
}

/// What the runs are kept in.
#[derive(Debug)]
enum Kept {
    File(Arc<SqliteStore>),
    Database(Arc<PgStore>),
}

/// The right to drive a run. Dropping it, or dying, gives it up.
#[derive(Debug)]
pub(crate) struct DriverLock {
    _on_this_machine: RunLock,
    /// Where other machines have the same runs.
    _on_all_machines: Option<PgLock>,
}

/// One of the slots of a lane that all processes with the same runs share.
#[derive(Debug)]
pub(crate) enum Slot {
    OnThisMachine(#[expect(dead_code, reason = "it is held")] SlotLock),
    OnAllMachines(#[expect(dead_code, reason = "it is held")] PgLock),
}

impl Local {
    /// Opens the store, and makes it where there is none.
    pub(crate) async fn open(loaded: &Loaded) -> Result<Self, CliError> {
        match Database::of(loaded)? {
            Some(database) => {
                let store = Arc::new(database.open().await?);
                let locks = loaded.places.folders.state.join("locks");
                Ok(Self { store: store.clone(), kept: Kept::Database(store), locks })
            }
            None => Self::open_file(&loaded.places.folders).await,
        }
    }

    /// Opens the file in these folders, whatever the configuration says.
    async fn open_file(folders: &Folders) -> Result<Self, CliError> {
        let path = folders.data.join(FILE_NAME);
        let store = SqliteStore::open(&path).await.map_err(|error| {
            let opened = CliError::failed("the runs cannot be read");
            match &error {
                StoreError::NotADatabase { .. } | StoreError::ForeignDatabase { .. } => opened
                    .with_hint(
                        "move the file away, or choose another folder with `MOOTHALL_DATA_DIR`",
                    ),
                _ => opened,
            }
            .with_source(error)
        })?;
        let store = Arc::new(store);
        let locks = folders.state.join("locks");
        Ok(Self { store: store.clone(), kept: Kept::File(store), locks })
    }

    /// Teams and their credentials.
    pub(crate) fn accounts(&self) -> &dyn Accounts {
        match &self.kept {
            Kept::File(store) => &**store,
            Kept::Database(store) => &**store,
        }
    }

    /// The same, for whoever keeps them.
    pub(crate) fn shared_accounts(&self) -> Arc<dyn Accounts> {
        match &self.kept {
            Kept::File(store) => Arc::<SqliteStore>::clone(store),
            Kept::Database(store) => Arc::<PgStore>::clone(store),
        }
    }

    /// Closes the file, and nothing stays beside it where nobody else has it open; or gives the
    /// connections to the database back.
    pub(crate) async fn close(&self) {
        match &self.kept {
            Kept::File(store) => store.close().await,
            Kept::Database(store) => store.close().await,
        }
    }

    /// Opens the store where there is one. To look is not to make.
    pub(crate) async fn open_existing(loaded: &Loaded) -> Result<Option<Self>, CliError> {
        match Database::of(loaded)? {
            Some(_) => Self::open(loaded).await.map(Some),
            None => Self::open_existing_file(&loaded.places.folders).await,
        }
    }

    /// Opens the file in these folders where there is one, whatever the configuration says.
    pub(crate) async fn open_existing_file(folders: &Folders) -> Result<Option<Self>, CliError> {
        match folders.data.join(FILE_NAME).symlink_metadata() {
            Ok(_) => Self::open_file(folders).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Takes the right to drive a run.
    pub(crate) async fn lock(&self, run_id: &RunId) -> Result<DriverLock, EngineError> {
        let mut tries = 1;
        loop {
            match self.try_lock(run_id).await {
                Err(EngineError::Busy(_)) if tries < LOCK_TRIES => {
                    tries += 1;
                    tokio::time::sleep(LOCK_AGAIN).await;
                }
                taken => return taken,
            }
        }
    }

    async fn try_lock(&self, run_id: &RunId) -> Result<DriverLock, EngineError> {
        let on_this_machine = RunLock::take(&self.locks, run_id)?;
        let on_all_machines = match &self.kept {
            Kept::File(_) => None,
            Kept::Database(store) => {
                let taken = store.drive(run_id).await?;
                Some(taken.ok_or_else(|| EngineError::Busy(run_id.clone()))?)
            }
        };
        Ok(DriverLock { _on_this_machine: on_this_machine, _on_all_machines: on_all_machines })
    }

    /// Takes one of so many slots of a lane; nothing where all are taken.
    pub(crate) async fn slot(&self, lane: &str, width: u32) -> Result<Option<Slot>, EngineError> {
        match &self.kept {
            Kept::File(_) => Ok(SlotLock::take(&self.locks, lane, width)?.map(Slot::OnThisMachine)),
            Kept::Database(store) => Ok(store.slot(lane, width).await?.map(Slot::OnAllMachines)),
        }
    }

    /// Which of these runs somebody drives at the moment: a process, or the workers of a cluster,
    /// which have it until it stands still or ends.
    pub(crate) async fn driven(&self, rows: &[RunRow]) -> Result<BTreeSet<RunId>, StoreError> {
        let (on_clusters, others): (Vec<&RunRow>, Vec<&RunRow>) =
            rows.iter().partition(|row| restate_of(&row.spec).is_some());
        let ids: Vec<RunId> = others.into_iter().map(|row| row.run_id.clone()).collect();
        let mut driven: BTreeSet<RunId> = match &self.kept {
            Kept::File(_) => {
                ids.into_iter().filter(|id| RunLock::is_held(&self.locks, id)).collect()
            }
            Kept::Database(store) => store.driven(&ids).await?,
        };
        let running = on_clusters.into_iter().filter(|row| row.state == RunState::Running);
        driven.extend(running.map(|row| row.run_id.clone()));
        Ok(driven)
    }

    /// Whether somebody drives the run at the moment.
    pub(crate) async fn is_driven(&self, row: &RunRow) -> Result<bool, CliError> {
        let driven = self.driven(std::slice::from_ref(row)).await.map_err(broken)?;
        Ok(!driven.is_empty())
    }

    /// Forgets who drove a run that is gone. A file that stays does no harm.
    pub(crate) fn forget(&self, run_id: &RunId) {
        let _ = fs_err::remove_file(self.locks.join(format!("{run_id}.lock")));
    }

    /// The run that a person means.
    pub(crate) async fn find(&self, words: &str) -> Result<RunRow, CliError> {
        let id = match self.store.find_runs(words, Teams::All).await.map_err(broken)? {
            RunMatch::One(id) => id,
            RunMatch::None => return Err(no_such_run(words)),
            RunMatch::Several(ids) => {
                let ids: Vec<&str> = ids.iter().map(RunId::as_str).collect();
                return Err(CliError::usage(format!("`{words}` is the beginning of several runs"))
                    .with_hint(format!("write more of it; they are\n  {}", ids.join("\n  "))));
            }
        };
        let row = self.store.run(&id).await.map_err(broken)?;
        row.ok_or_else(|| no_such_run(words))
    }
}

/// Opens the store and finds a run in it.
pub(crate) async fn open_and_find(
    loaded: &Loaded,
    words: &str,
) -> Result<(Local, RunRow), CliError> {
    let local = Local::open_existing(loaded).await?.ok_or_else(|| no_such_run(words))?;
    let row = local.find(words).await?;
    Ok((local, row))
}

pub(crate) fn no_such_run(words: &str) -> CliError {
    CliError::usage(format!("there is no run `{words}`")).with_hint("`moothall runs` lists them")
}

/// What a person is told when the store fails in the middle of something.
pub(crate) fn broken(error: StoreError) -> CliError {
    CliError::failed("the runs cannot be read").with_source(error)
}

/// The beginning of an id, as it stands in lists.
pub(crate) fn short(id: &RunId) -> &str {
    id.as_str().get(..SHORT_ID_CHARS).unwrap_or(id.as_str())
}

/// The URL of the Restate cluster whose workers drive a run, if they do.
pub(crate) fn restate_of(spec: &StoredSpec) -> Option<&str> {
    spec.read().ok()?.settings().restate.as_deref()
}

/// A run that begins now.
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
        owner: Owner::local(),
        cap: None,
        title: title.to_owned(),
        model: model.to_string(),
        spec,
        build: env!("CARGO_PKG_VERSION").to_owned(),
        created_at_ms: now_ms(),
    })
}
