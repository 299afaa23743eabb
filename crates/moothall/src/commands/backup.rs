//! `moothall backup`: every run in one file.

use std::io;
use std::path::Path;

use moothall_store::SqliteStore;
use serde_json::json;
use tempfile::{Builder, NamedTempFile};

use super::{Interruptible, block_on, words};
use crate::archive::{self, Manifest};
use crate::args::{BackupArgs, Global};
use crate::database::Database;
use crate::error::{CliError, Exit};
use crate::local::{self, FILE_NAME};
use crate::{config, logging, terminal};

pub(super) fn run(global: &Global, args: &BackupArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    if let Some(database) = Database::of(&loaded)? {
        return Err(database.not_a_file().into());
    }
    let database = loaded.places.folders.data.join(FILE_NAME);
    if database.symlink_metadata().is_err() {
        return Err(CliError::usage("there is no run to back up")
            .with_hint("`moothall config path` shows where runs are looked for")
            .into());
    }
    if args.file.symlink_metadata().is_ok() {
        return Err(exists(&args.file).into());
    }
    // Whatever ends this, what is half done goes away with it.
    let Interruptible::Done(written) = block_on(write(&database, &args.file))? else {
        return Err(CliError::new(Exit::Cancelled, "cancelled; no backup was made").into());
    };
    let (manifest, bytes) = written?;
    terminal::print(&match args.json {
        true => {
            let report = json!({
                "file": args.file,
                "bytes": bytes,
                "runs": manifest.runs,
                "created_at_ms": manifest.created_at_ms,
            });
            format!("{report:#}\n")
        }
        false => format!(
            "{} in {}, {}\n",
            words::runs(manifest.runs),
            args.file.display(),
            words::bytes(bytes)
        ),
    })?;
    Ok(Exit::Fine)
}

async fn write(database: &Path, file: &Path) -> Result<(Manifest, u64), CliError> {
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
    let copy = draft.path().join(FILE_NAME);
    let at_ms = local::now_ms();
    let uncopied = |error| CliError::failed("the runs cannot be copied").with_source(error);
    let store = SqliteStore::open(database).await.map_err(uncopied)?;
    store.copy_to(&copy).await.map_err(uncopied)?;
    store.close().await;
    let runs = SqliteStore::check_copy(&copy).await.map_err(uncopied)?;
    let mut packed = NamedTempFile::new_in(draft.path()).map_err(unwritable)?;
    let manifest = archive::write(&mut packed, &copy, runs, at_ms).map_err(|error| {
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
