//! `moothall restore`: the runs of a backup, in their place again.

use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use moothall_store::{RunFilter, SqliteStore, Teams};
use serde_json::json;
use tempfile::{Builder, TempDir};

use super::{runtime, words};
use crate::archive::{self, Manifest};
use crate::args::{Global, RestoreArgs};
use crate::database::Database;
use crate::error::{CliError, Exit};
use crate::folders::{DATA_DIR_VARIABLE, Folders};
use crate::local::{self, FILE_NAME, Local};
use crate::{config, logging, terminal};

pub(super) fn run(global: &Global, args: &RestoreArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    if let (Some(database), None) = (Database::of(&loaded)?, &args.into) {
        return Err(database.not_a_file().into());
    }
    let in_use = &loaded.places.folders;
    let folders = match &args.into {
        Some(folder) if !is_same(folder, &in_use.data) => {
            Folders::under(in_use.config.clone(), folder)
        }
        _ => in_use.clone(),
    };
    let database = folders.data.join(FILE_NAME);
    if database.symlink_metadata().is_ok() && !args.force {
        return Err(CliError::usage(format!(
            "there are runs in {} already",
            folders.data.display()
        ))
        .with_hint("say `--force` to move them aside, or choose another folder with `--into DIR`")
        .into());
    }
    runtime()?.block_on(async {
        let (draft, manifest) = unpack(&args.file, &folders.data).await?;
        let aside = put_aside(&folders, &database).await?;
        let unplaced = |error| CliError::failed("the runs cannot be put there").with_source(error);
        fs_err::rename(draft.path().join(FILE_NAME), &database).map_err(unplaced)?;
        sync(&folders.data).map_err(unplaced)?;
        let shown = folders.data.display();
        if args.json {
            let report = json!({
                "data": folders.data,
                "runs": manifest.runs,
                "made_by": manifest.made_by,
                "created_at_ms": manifest.created_at_ms,
                "moved_aside": aside,
            });
            terminal::print(&format!("{report:#}\n"))?;
            return Ok(Exit::Fine);
        }
        terminal::print(&format!(
            "restored {} of {} into {shown}\n",
            words::runs(manifest.runs),
            words::time(manifest.created_at_ms)
        ))?;
        if let Some(aside) = aside {
            terminal::note(&format!("what was there is now {}\n", aside.display()));
        }
        if !is_same(&folders.data, &in_use.data) {
            terminal::note(&format!("look at them: {DATA_DIR_VARIABLE}={shown} moothall runs\n"));
        }
        Ok(Exit::Fine)
    })
}

/// Unpacks beside the place where the runs will be, and looks at everything before any of it counts.
async fn unpack(file: &Path, data: &Path) -> Result<(TempDir, Manifest), CliError> {
    let refused = |error: anyhow::Error| {
        CliError::usage(format!("{} is not restored", file.display())).with_source(error)
    };
    let unwritable = |error: io::Error| {
        CliError::failed(format!("nothing can be written into {}", data.display()))
            .with_source(error)
    };
    let source = fs_err::File::open(file)
        .map_err(|error| CliError::usage("the backup cannot be read").with_source(error))?;
    make_private(data).map_err(unwritable)?;
    let draft = Builder::new().prefix(".restore-").tempdir_in(data).map_err(unwritable)?;
    let copy = draft.path().join(FILE_NAME);
    let mut unpacked = fs_err::File::create_new(&copy).map_err(unwritable)?;
    let manifest = archive::read(BufReader::new(source), &mut unpacked).map_err(refused)?;
    unpacked.flush().and_then(|()| unpacked.sync_all()).map_err(unwritable)?;
    drop(unpacked);
    let runs = SqliteStore::check_copy(&copy).await.map_err(|error| refused(error.into()))?;
    if runs != manifest.runs {
        return Err(refused(anyhow::anyhow!(
            "it says that it holds {}, and holds {runs}",
            words::runs(manifest.runs)
        )));
    }
    Ok((draft, manifest))
}

/// Moves runs that are there out of the way, and says where they are now.
async fn put_aside(folders: &Folders, database: &Path) -> Result<Option<PathBuf>, CliError> {
    let in_the_way = || {
        CliError::failed(format!("another program has {} open", database.display()))
            .with_hint("close it, and try again")
    };
    if let Some(local) = Local::open_existing_file(folders).await? {
        let filter = RunFilter { teams: Teams::All, state: None, limit: u32::MAX };
        for row in local.store.runs(filter).await.map_err(local::broken)? {
            if local.is_driven(&row).await? {
                let id = local::short(&row.run_id);
                return Err(CliError::failed(format!("a process drives run {}", row.run_id))
                    .with_hint(format!("let it stand still first: `moothall pause {id}`")));
            }
        }
        local.close().await;
    }
    // A side file that stays would be taken for a part of the new file, and spoil it.
    if ["-wal", "-shm"].iter().any(|end| beside(database, end).symlink_metadata().is_ok()) {
        return Err(in_the_way());
    }
    if database.symlink_metadata().is_err() {
        return Ok(None);
    }
    let moment: String =
        words::time(local::now_ms()).chars().filter(|sign| sign.is_ascii_alphanumeric()).collect();
    let aside = beside(database, &format!(".before-{moment}"));
    if aside.symlink_metadata().is_ok() {
        return Err(CliError::failed(format!("{} exists already", aside.display()))
            .with_hint("try again in a second"));
    }
    fs_err::rename(database, &aside).map_err(|error| {
        CliError::failed("the runs that are there cannot be moved aside").with_source(error)
    })?;
    Ok(Some(aside))
}

/// Whether two names mean one folder. Who drives its runs is written elsewhere for the one in use.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs_err::canonicalize(one), fs_err::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Makes a folder that nobody else can look into, where there is none.
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// So that the new name survives a loss of power.
fn sync(folder: &Path) -> io::Result<()> {
    fs_err::File::open(folder)?.sync_all()
}
