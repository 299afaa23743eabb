//! `moothall backup`: writes all runs and drafts to one file.

use std::io;
use std::path::{Path, PathBuf};

use moothall_store::SqliteStore;
use serde_json::json;
use tempfile::{Builder, NamedTempFile};

use super::{InterruptibleResult, block_on};
use crate::app_dirs::AppDirs;
use crate::archive::{self, BackupManifest, BackupPart};
use crate::args::{BackupArgs, GlobalArgs};
use crate::database::DatabaseConfig;
use crate::display;
use crate::draft_backup::{anchor_path, find_stores, pack_store, stores_folder};
use crate::error::{CliError, CliExit};
use crate::run_store::FILE_NAME;
use crate::work_progress::{WorkProgress, WorkSize};
use crate::{config, logging, terminal};

struct BackupSources {
    /// The SQLite file with all runs. `None` if there are no runs or they are in a database server.
    database: Option<PathBuf>,
    /// Directory of the draft stores.
    stores: PathBuf,
    /// The data directory, which contains the anchors of the stores.
    data: PathBuf,
    store_ids: Vec<String>,
}

impl BackupSources {
    fn find(folders: &AppDirs, server: Option<&DatabaseConfig>) -> Result<Self, CliError> {
        let database = folders.data.join(FILE_NAME);
        let is_there = server.is_none() && database.symlink_metadata().is_ok();
        let store_ids = find_stores(&folders.state)
            .map_err(|error| CliError::failed("cannot read the drafts").with_source(error))?;
        let stores = stores_folder(&folders.state);
        let data = folders.data.clone();
        Ok(Self { database: is_there.then_some(database), stores, data, store_ids })
    }
}

pub(crate) fn run(global: &GlobalArgs, args: &BackupArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let server = DatabaseConfig::of(&loaded)?;
    let sources = BackupSources::find(&loaded.locations.folders, server.as_ref())?;
    if sources.database.is_none() && sources.store_ids.is_empty() {
        return Err(match &server {
            Some(server) => server.not_a_file(),
            None => CliError::usage("nothing to back up: no runs and no drafts")
                .with_hint("`moothall config path` shows the directories that moothall uses"),
        }
        .into());
    }
    if args.file.symlink_metadata().is_ok() {
        return Err(already_exists(&args.file).into());
    }
    // Temporary files are removed however this ends.
    let InterruptibleResult::Done(written) = block_on(write(&sources, &args.file, args.json))?
    else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled; no backup was written").into());
    };
    let (manifest, bytes) = written?;
    let stores = manifest.draft_stores().len();
    let place = server.as_ref().map(|server| server.address.location());
    terminal::print(&match args.json {
        true => {
            let report = json!({
                "file": args.file,
                "bytes": bytes,
                "runs": manifest.runs,
                "runs_in_database": place,
                "draft_stores": stores,
                "created_at_ms": manifest.created_at_ms,
            });
            format!("{report:#}\n")
        }
        false => format!(
            "saved {} to {}, {}\n",
            display::backed_up(manifest.has_database().then_some(manifest.runs), stores),
            args.file.display(),
            display::bytes(bytes)
        ),
    })?;
    if let Some(place) = place {
        terminal::note(&format!(
            "runs are in the database {place} and not in this file; \
             back them up with `pg_dump --schema=moothall --format=custom`\n"
        ));
    }
    Ok(CliExit::Fine)
}

async fn write(
    sources: &BackupSources,
    file: &Path,
    is_json: bool,
) -> Result<(BackupManifest, u64), CliError> {
    let progress = WorkProgress::start("copying the runs", is_json);
    let unwritable = |error: io::Error| {
        CliError::failed(format!("cannot write {}", file.display())).with_source(error)
    };
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // In the target directory, which needs space for the backup anyway. Not accessible to other
    // users.
    let temp_dir =
        Builder::new().prefix(".moothall-backup-").tempdir_in(folder).map_err(unwritable)?;
    let at_ms = moothall_store::now_ms();
    let mut files = Vec::new();
    let mut runs = 0;
    if let Some(database) = &sources.database {
        let copy = BackupPart::Database.path_in(temp_dir.path());
        let copy_failed = |error| CliError::failed("cannot copy the runs").with_source(error);
        progress.step_file("copying the runs", &copy, file_bytes(database));
        let store = SqliteStore::open(database).await.map_err(copy_failed)?;
        store.copy_to(&copy).await.map_err(copy_failed)?;
        store.close().await;
        progress.step("checking the copy of the runs", WorkSize::Unknown);
        runs = SqliteStore::check_copy(&copy).await.map_err(copy_failed)?;
        files.push((BackupPart::Database, copy));
    }
    let total = sources.store_ids.len() as u64;
    for (done, id) in (0..).zip(&sources.store_ids) {
        progress.step("copying the drafts", WorkSize::Steps { done, total });
        let part = BackupPart::DraftStore(id.clone());
        let copy = part.path_in(temp_dir.path());
        let target = fs_err::File::create_new(&copy).map_err(unwritable)?;
        let seconds = at_ms / 1000;
        let (store, anchor) = (sources.stores.join(id), anchor_path(&sources.data, id));
        let target = io::BufWriter::new(target);
        pack_store(&store, &anchor, target, seconds).map_err(|error| {
            CliError::failed(format!("cannot copy the draft store {id}")).with_source(error)
        })?;
        files.push((part, copy));
    }
    // Temporary files are readable only by their owner, and the backup keeps that mode.
    let mut packed = NamedTempFile::new_in(temp_dir.path()).map_err(unwritable)?;
    let total = files.iter().map(|(_, path)| file_bytes(path)).sum();
    progress.step_bytes("writing the backup", total);
    let manifest =
        archive::write(progress.counted(&mut packed), &files, runs, at_ms).map_err(|error| {
            CliError::failed(format!("cannot write {}", file.display())).with_source(error)
        })?;
    packed.as_file().sync_all().map_err(unwritable)?;
    let packed = packed.persist_noclobber(file).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(file),
        _ => unwritable(error.error),
    })?;
    let bytes = packed.metadata().map_err(unwritable)?.len();
    Ok((manifest, bytes))
}

/// The size of a file, for progress only.
fn file_bytes(path: &Path) -> u64 {
    fs_err::metadata(path).map_or(0, |file| file.len())
}

fn already_exists(file: &Path) -> CliError {
    CliError::usage(format!("{} already exists", file.display()))
        .with_hint("choose another name; `moothall backup` does not overwrite files")
}
