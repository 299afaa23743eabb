//! `moothall backup`: all runs and drafts in one file.

use std::io;
use std::path::{Path, PathBuf};

use moothall_store::SqliteStore;
use serde_json::json;
use tempfile::{Builder, NamedTempFile};

use super::{Interruptible, block_on};
use crate::archive::{self, ArchivePart, Manifest};
use crate::args::{BackupArgs, Global};
use crate::database::Database;
use crate::display;
use crate::draft_backup::{anchor_path, find_stores, pack_store, stores_folder};
use crate::error::{CliError, Exit};
use crate::folders::Folders;
use crate::local::FILE_NAME;
use crate::{config, logging, terminal};

/// What is backed up.
struct BackupSources {
    /// The file with all runs; none where there is no run, or where runs are in a database server.
    database: Option<PathBuf>,
    /// The folder of the draft stores, and their ids.
    stores: PathBuf,
    /// The data folder, which holds the anchors of the stores.
    data: PathBuf,
    store_ids: Vec<String>,
}

impl BackupSources {
    fn find(folders: &Folders, server: Option<&Database>) -> Result<Self, CliError> {
        let database = folders.data.join(FILE_NAME);
        let is_there = server.is_none() && database.symlink_metadata().is_ok();
        let store_ids = find_stores(&folders.state)
            .map_err(|error| CliError::failed("the drafts cannot be read").with_source(error))?;
        let stores = stores_folder(&folders.state);
        let data = folders.data.clone();
        Ok(Self { database: is_there.then_some(database), stores, data, store_ids })
    }
}

pub(super) fn run(global: &Global, args: &BackupArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let server = Database::of(&loaded)?;
    let sources = BackupSources::find(&loaded.places.folders, server.as_ref())?;
    if sources.database.is_none() && sources.store_ids.is_empty() {
        return Err(match &server {
            Some(server) => server.not_a_file(),
            None => CliError::usage("nothing to back up: there are no runs and no drafts")
                .with_hint("`moothall config path` shows where runs are looked for"),
        }
        .into());
    }
    if args.file.symlink_metadata().is_ok() {
        return Err(exists(&args.file).into());
    }
    // Whatever ends this, what is half done goes away with it.
    let Interruptible::Done(written) = block_on(write(&sources, &args.file))? else {
        return Err(CliError::new(Exit::Cancelled, "cancelled; no backup was made").into());
    };
    let (manifest, bytes) = written?;
    let stores = manifest.draft_stores().len();
    let place = server.as_ref().map(|server| server.address.place());
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
            "{} in {}, {}\n",
            display::backed_up(manifest.has_database().then_some(manifest.runs), stores),
            args.file.display(),
            display::bytes(bytes)
        ),
    })?;
    if let Some(place) = place {
        terminal::note(&format!(
            "runs are in the database {place} and not in this file: \
             back them up with `pg_dump --schema=moothall --format=custom`\n"
        ));
    }
    Ok(Exit::Fine)
}

async fn write(sources: &BackupSources, file: &Path) -> Result<(Manifest, u64), CliError> {
    let unwritable = |error: io::Error| {
        CliError::failed(format!("{} cannot be written", file.display())).with_source(error)
    };
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Beside the backup, where there must be space for it anyway; closed to others.
    let draft =
        Builder::new().prefix(".moothall-backup-").tempdir_in(folder).map_err(unwritable)?;
    let at_ms = moothall_store::now_ms();
    let mut files = Vec::new();
    let mut runs = 0;
    if let Some(database) = &sources.database {
        let copy = ArchivePart::Database.path_in(draft.path());
        let uncopied = |error| CliError::failed("the runs cannot be copied").with_source(error);
        let store = SqliteStore::open(database).await.map_err(uncopied)?;
        store.copy_to(&copy).await.map_err(uncopied)?;
        store.close().await;
        runs = SqliteStore::check_copy(&copy).await.map_err(uncopied)?;
        files.push((ArchivePart::Database, copy));
    }
    for id in &sources.store_ids {
        let part = ArchivePart::DraftStore(id.clone());
        let copy = part.path_in(draft.path());
        let target = fs_err::File::create_new(&copy).map_err(unwritable)?;
        let seconds = at_ms / 1000;
        let (store, anchor) = (sources.stores.join(id), anchor_path(&sources.data, id));
        let target = io::BufWriter::new(target);
        pack_store(&store, &anchor, target, seconds).map_err(|error| {
            CliError::failed(format!("the draft store {id} cannot be copied")).with_source(error)
        })?;
        files.push((part, copy));
    }
    // A temporary file is readable for its owner alone, and so is what it becomes.
    let mut packed = NamedTempFile::new_in(draft.path()).map_err(unwritable)?;
    let manifest = archive::write(&mut packed, &files, runs, at_ms).map_err(|error| {
        CliError::failed(format!("{} cannot be written", file.display())).with_source(error)
    })?;
    packed.as_file().sync_all().map_err(unwritable)?;
    let packed = packed.persist_noclobber(file).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => unwritable(error.error),
    })?;
    let bytes = packed.metadata().map_err(unwritable)?.len();
    Ok((manifest, bytes))
}

fn exists(file: &Path) -> CliError {
    CliError::usage(format!("{} exists already", file.display()))
        .with_hint("choose another name: a backup never replaces a file")
}
