//! `moothall restore`: restores the runs and drafts of a backup.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use moothall_store::{RunFilter, SqliteStore, TeamFilter, now_ms};
use serde_json::json;
use tempfile::{Builder, TempDir};

use super::runtime;
use crate::app_dirs::{AppDirs, DATA_DIR_VARIABLE};
use crate::archive::{self, BackupManifest, BackupPart};
use crate::args::{GlobalArgs, RestoreArgs};
use crate::database::DatabaseConfig;
use crate::display;
use crate::draft_backup::{
    anchor_path, is_open_elsewhere, make_private, place_anchor, stores_folder, take_anchor,
    unpack_store,
};
use crate::error::{CliError, CliExit};
use crate::run_store::{self, FILE_NAME, RunStore};
use crate::work_progress::{WorkProgress, WorkSize};
use crate::{config, logging, terminal};

pub(crate) fn run(global: &GlobalArgs, args: &RestoreArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let in_use = &loaded.locations.folders;
    let folders = match &args.into {
        Some(folder) if !is_same(folder, &in_use.data) => {
            AppDirs::under(in_use.config.clone(), folder)
        }
        _ => in_use.clone(),
    };
    let manifest = read_manifest(&args.file)?;
    if let (Some(database), None) = (DatabaseConfig::of(&loaded)?, &args.into)
        && manifest.has_database()
    {
        return Err(database.not_a_file().into());
    }
    let database = folders.data.join(FILE_NAME);
    let stores = stores_folder(&folders.state);
    if !args.force {
        refuse_replacing(&manifest, &folders, &database, &stores)?;
    }
    runtime()?.block_on(async {
        let unpacked = UnpackedBackup::of(&args.file, &folders, args.json).await?;
        refuse_open_stores(&unpacked.manifest, &stores)?;
        let mut aside = None;
        if unpacked.manifest.has_database() {
            aside = move_aside(&folders, &database).await?;
            let restore_failed =
                |error| CliError::failed("cannot restore the runs").with_source(error);
            let copy = BackupPart::Database.path_in(unpacked.data.path());
            fs_err::rename(copy, &database).map_err(restore_failed)?;
            sync(&folders.data).map_err(restore_failed)?;
        }
        let drafts_aside = unpacked
            .place_stores(&stores, &folders.data)
            .map_err(|error| CliError::failed("cannot restore the drafts").with_source(error))?;
        let manifest = &unpacked.manifest;
        let (shown, store_count) = (folders.data.display(), manifest.draft_stores().len());
        if args.json {
            let report = json!({
                "data": folders.data,
                "runs": manifest.runs,
                "draft_stores": store_count,
                "made_by": manifest.made_by,
                "created_at_ms": manifest.created_at_ms,
                "moved_aside": aside,
                "drafts_moved_aside": drafts_aside,
            });
            terminal::print(&format!("{report:#}\n"))?;
            return Ok(CliExit::Fine);
        }
        terminal::print(&format!(
            "restored {} from {} into {shown}\n",
            display::backed_up(manifest.has_database().then_some(manifest.runs), store_count),
            display::time(manifest.created_at_ms)
        ))?;
        for aside in aside.iter().chain(&drafts_aside) {
            terminal::note(&format!("the replaced data is now {}\n", aside.display()));
        }
        if !is_same(&folders.data, &in_use.data) {
            terminal::note(&format!(
                "to list the restored runs: {DATA_DIR_VARIABLE}={shown} moothall runs\n"
            ));
        }
        Ok(CliExit::Fine)
    })
}

fn read_manifest(file: &Path) -> Result<BackupManifest, CliError> {
    archive::read_manifest(BufReader::new(open(file)?)).map_err(|error| refused(file, error))
}

fn open(file: &Path) -> Result<fs_err::File, CliError> {
    fs_err::File::open(file)
        .map_err(|error| CliError::usage("cannot read the backup").with_source(error))
}

fn refused(file: &Path, error: anyhow::Error) -> CliError {
    CliError::usage(format!("cannot restore {}", file.display()))
        .with_source(error)
        .with_hint("nothing was changed; pass an intact file that `moothall backup` wrote")
}

fn refuse_replacing(
    manifest: &BackupManifest,
    folders: &AppDirs,
    database: &Path,
    stores: &Path,
) -> Result<(), CliError> {
    const HINT: &str =
        "pass `--force` to move them aside, or choose another directory with `--into DIR`";
    let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
    if manifest.has_database() && is_there(database.to_owned()) {
        let data = folders.data.display();
        return Err(CliError::usage(format!("runs already exist in {data}")).with_hint(HINT));
    }
    let has_drafts =
        |id: &&String| is_there(stores.join(id)) || is_there(anchor_path(&folders.data, id));
    match manifest.draft_stores().iter().find(has_drafts) {
        Some(id) => {
            let store = stores.join(id);
            Err(CliError::usage(format!("drafts already exist in {}", store.display()))
                .with_hint(HINT))
        }
        None => Ok(()),
    }
}

fn refuse_open_stores(manifest: &BackupManifest, stores: &Path) -> Result<(), CliError> {
    let ids = manifest.draft_stores();
    match ids.iter().map(|id| stores.join(id)).find(|store| is_open_elsewhere(store)) {
        Some(store) => Err(CliError::failed(format!(
            "another process is using the drafts in {}",
            store.display()
        ))
        .with_hint("stop `moothall serve`, `mcp` and `edit` for this workspace, then try again")),
        None => Ok(()),
    }
}

/// A backup that is unpacked next to its target directories and verified before it replaces
/// anything.
struct UnpackedBackup {
    manifest: BackupManifest,
    /// Contains the database.
    data: TempDir,
    /// Contains the draft stores by id; on the file system of the state directory.
    stores: Option<TempDir>,
}

impl UnpackedBackup {
    async fn of(file: &Path, folders: &AppDirs, is_json: bool) -> Result<Self, CliError> {
        let progress = WorkProgress::start("unpacking the backup", is_json);
        let unwritable = |folder: &Path| {
            let message = format!("cannot write to {}", folder.display());
            move |error: io::Error| CliError::failed(message).with_source(error)
        };
        let data = &folders.data;
        make_private(data).map_err(unwritable(data))?;
        let temp_dir =
            Builder::new().prefix(".restore-").tempdir_in(data).map_err(unwritable(data))?;
        let opened = open(file)?;
        let bytes = opened.metadata().map_or(0, |file| file.len());
        progress.step_bytes("unpacking the backup", bytes);
        let reader = BufReader::new(progress.counted(opened));
        let manifest =
            archive::read(reader, temp_dir.path()).map_err(|error| refused(file, error))?;
        if manifest.has_database() {
            let copy = BackupPart::Database.path_in(temp_dir.path());
            progress.step("checking the runs", WorkSize::Unknown);
            let runs = SqliteStore::check_copy(&copy)
                .await
                .map_err(|error| refused(file, error.into()))?;
            if runs != manifest.runs {
                let run_count = display::runs(manifest.runs);
                let error = anyhow::anyhow!(
                    "the manifest lists {run_count}, but the database contains {runs}"
                );
                return Err(refused(file, error));
            }
        }
        let mut unpacked = Self { manifest, data: temp_dir, stores: None };
        let ids = unpacked.manifest.draft_stores();
        if !ids.is_empty() {
            let folder = stores_folder(&folders.state);
            make_private(&folder).map_err(unwritable(&folder))?;
            let stores_dir = Builder::new().prefix(".restore-").tempdir_in(&folder);
            let stores_dir = stores_dir.map_err(unwritable(&folder))?;
            for id in ids {
                let packed = BackupPart::DraftStore(id.clone()).path_in(unpacked.data.path());
                let packed = fs_err::File::open(packed).map_err(unwritable(data))?;
                unpack_store(BufReader::new(packed), &stores_dir.path().join(&id))
                    .map_err(|error| refused(file, error))?;
            }
            // One sync for all files, because a store may contain thousands.
            rustix::fs::sync();
            unpacked.stores = Some(stores_dir);
        }
        Ok(unpacked)
    }

    /// Moves each draft store and its anchor into place and returns the new paths of replaced ones.
    /// The anchor must be replaced too: an anchor newer than the store would report the restored
    /// journal as truncated.
    fn place_stores(&self, stores: &Path, data: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(unpacked) = &self.stores else { return Ok(Vec::new()) };
        let mut moved = Vec::new();
        for id in self.manifest.draft_stores() {
            let (store, anchor) = (stores.join(&id), anchor_path(data, &id));
            let restored = unpacked.path().join(&id);
            let restored_anchor = take_anchor(&restored)?;
            for replaced in [&store, &anchor] {
                if replaced.symlink_metadata().is_ok() {
                    let aside = with_suffix(replaced, &format!(".before-{}", timestamp()));
                    fs_err::rename(replaced, &aside)?;
                    moved.push(aside);
                }
            }
            fs_err::rename(restored, &store)?;
            if let Some(bytes) = restored_anchor {
                place_anchor(&anchor, &bytes)?;
            }
        }
        sync(stores)?;
        Ok(moved)
    }
}

/// The current second for use in a file name.
fn timestamp() -> String {
    display::time(now_ms()).chars().filter(|sign| sign.is_ascii_alphanumeric()).collect()
}

/// Moves existing runs out of the way and returns their new path.
async fn move_aside(folders: &AppDirs, database: &Path) -> Result<Option<PathBuf>, CliError> {
    let in_use_error = || {
        CliError::failed(format!("another program is using {}", database.display()))
            .with_hint("close it and try again")
    };
    if let Some(local) = RunStore::open_existing_file(folders).await? {
        let filter = RunFilter { teams: TeamFilter::All, state: None, limit: u32::MAX };
        for row in local.store.runs(filter).await.map_err(run_store::store_error)? {
            if local.is_driven(&row).await? {
                let id = run_store::short_id(&row.run_id);
                return Err(CliError::failed(format!(
                    "another process is executing run {}",
                    row.run_id
                ))
                .with_hint(format!("pause it with `moothall pause {id}`")));
            }
        }
        local.close().await;
    }
    // SQLite would apply a remaining side file to the new database and corrupt it.
    if ["-wal", "-shm"].iter().any(|end| with_suffix(database, end).symlink_metadata().is_ok()) {
        return Err(in_use_error());
    }
    if database.symlink_metadata().is_err() {
        return Ok(None);
    }
    let aside = with_suffix(database, &format!(".before-{}", timestamp()));
    if aside.symlink_metadata().is_ok() {
        return Err(CliError::failed(format!("{} already exists", aside.display()))
            .with_hint("try again in a second"));
    }
    fs_err::rename(database, &aside).map_err(|error| {
        CliError::failed("cannot move the existing runs aside").with_source(error)
    })?;
    Ok(Some(aside))
}

/// Whether two paths are the same directory. Matters because the locks of the directory in use are
/// stored elsewhere.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs_err::canonicalize(one), fs_err::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Makes the rename survive a power failure.
fn sync(folder: &Path) -> io::Result<()> {
    fs_err::File::open(folder)?.sync_all()
}
