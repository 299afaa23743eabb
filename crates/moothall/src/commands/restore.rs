//! `moothall restore`: the runs and drafts of a backup, in their place again.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use moothall_store::{RunFilter, SqliteStore, Teams, now_ms};
use serde_json::json;
use tempfile::{Builder, TempDir};

use super::runtime;
use crate::archive::{self, ArchivePart, Manifest};
use crate::args::{Global, RestoreArgs};
use crate::database::Database;
use crate::display;
use crate::draft_backup::{
    anchor_path, is_open_elsewhere, make_private, place_anchor, stores_folder, take_anchor,
    unpack_store,
};
use crate::error::{CliError, Exit};
use crate::folders::{DATA_DIR_VARIABLE, Folders};
use crate::local::{self, FILE_NAME, Local};
use crate::{config, logging, terminal};

pub(super) fn run(global: &Global, args: &RestoreArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let in_use = &loaded.places.folders;
    let folders = match &args.into {
        Some(folder) if !is_same(folder, &in_use.data) => {
            Folders::under(in_use.config.clone(), folder)
        }
        _ => in_use.clone(),
    };
    let manifest = read_manifest(&args.file)?;
    if let (Some(database), None) = (Database::of(&loaded)?, &args.into)
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
        let unpacked = UnpackedBackup::of(&args.file, &folders).await?;
        refuse_open_stores(&unpacked.manifest, &stores)?;
        let mut aside = None;
        if unpacked.manifest.has_database() {
            aside = put_aside(&folders, &database).await?;
            let unplaced =
                |error| CliError::failed("the runs cannot be put there").with_source(error);
            let copy = ArchivePart::Database.path_in(unpacked.data.path());
            fs_err::rename(copy, &database).map_err(unplaced)?;
            sync(&folders.data).map_err(unplaced)?;
        }
        let drafts_aside = unpacked.place_stores(&stores, &folders.data).map_err(|error| {
            CliError::failed("the drafts cannot be put there").with_source(error)
        })?;
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
            return Ok(Exit::Fine);
        }
        terminal::print(&format!(
            "restored {} of {} into {shown}\n",
            display::backed_up(manifest.has_database().then_some(manifest.runs), store_count),
            display::time(manifest.created_at_ms)
        ))?;
        for aside in aside.iter().chain(&drafts_aside) {
            terminal::note(&format!("what was there is now {}\n", aside.display()));
        }
        if !is_same(&folders.data, &in_use.data) {
            terminal::note(&format!("look at them: {DATA_DIR_VARIABLE}={shown} moothall runs\n"));
        }
        Ok(Exit::Fine)
    })
}

fn read_manifest(file: &Path) -> Result<Manifest, CliError> {
    archive::read_manifest(BufReader::new(open(file)?)).map_err(|error| refused(file, error))
}

fn open(file: &Path) -> Result<fs_err::File, CliError> {
    fs_err::File::open(file)
        .map_err(|error| CliError::usage("the backup cannot be read").with_source(error))
}

fn refused(file: &Path, error: anyhow::Error) -> CliError {
    CliError::usage(format!("{} is not restored", file.display())).with_source(error)
}

fn refuse_replacing(
    manifest: &Manifest,
    folders: &Folders,
    database: &Path,
    stores: &Path,
) -> Result<(), CliError> {
    const HINT: &str =
        "say `--force` to move them aside, or choose another folder with `--into DIR`";
    let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
    if manifest.has_database() && is_there(database.to_owned()) {
        let data = folders.data.display();
        return Err(CliError::usage(format!("there are runs in {data} already")).with_hint(HINT));
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

fn refuse_open_stores(manifest: &Manifest, stores: &Path) -> Result<(), CliError> {
    let ids = manifest.draft_stores();
    match ids.iter().map(|id| stores.join(id)).find(|store| is_open_elsewhere(store)) {
        Some(store) => Err(CliError::failed(format!(
            "another process has the drafts open: {}",
            store.display()
        ))
        .with_hint("stop `moothall serve`, `mcp` and `edit` for this workspace, and try again")),
        None => Ok(()),
    }
}

/// A backup that was unpacked beside the places of its parts and checked, before any of it counts.
struct UnpackedBackup {
    manifest: Manifest,
    /// Holds the database.
    data: TempDir,
    /// Holds the draft stores by their ids; on the file system of the state folder.
    stores: Option<TempDir>,
}

impl UnpackedBackup {
    async fn of(file: &Path, folders: &Folders) -> Result<Self, CliError> {
        let unwritable = |folder: &Path| {
            let words = format!("nothing can be written into {}", folder.display());
            move |error: io::Error| CliError::failed(words).with_source(error)
        };
        let data = &folders.data;
        make_private(data).map_err(unwritable(data))?;
        let draft =
            Builder::new().prefix(".restore-").tempdir_in(data).map_err(unwritable(data))?;
        let manifest = archive::read(BufReader::new(open(file)?), draft.path())
            .map_err(|error| refused(file, error))?;
        if manifest.has_database() {
            let copy = ArchivePart::Database.path_in(draft.path());
            let runs = SqliteStore::check_copy(&copy)
                .await
                .map_err(|error| refused(file, error.into()))?;
            if runs != manifest.runs {
                let words = display::runs(manifest.runs);
                let error = anyhow::anyhow!("it says that it holds {words}, and holds {runs}");
                return Err(refused(file, error));
            }
        }
        let mut unpacked = Self { manifest, data: draft, stores: None };
        let ids = unpacked.manifest.draft_stores();
        if !ids.is_empty() {
            let folder = stores_folder(&folders.state);
            make_private(&folder).map_err(unwritable(&folder))?;
            let beside = Builder::new().prefix(".restore-").tempdir_in(&folder);
            let beside = beside.map_err(unwritable(&folder))?;
            for id in ids {
                let packed = ArchivePart::DraftStore(id.clone()).path_in(unpacked.data.path());
                let packed = fs_err::File::open(packed).map_err(unwritable(data))?;
                unpack_store(BufReader::new(packed), &beside.path().join(&id))
                    .map_err(|error| refused(file, error))?;
            }
            // One for all of them: a store may hold thousands of files.
            rustix::fs::sync();
            unpacked.stores = Some(beside);
        }
        Ok(unpacked)
    }

    /// Puts each draft store and its anchor in their places, and returns where replaced ones are now. An
    /// anchor that is newer than the store would call the restored journal cut off.
    fn place_stores(&self, stores: &Path, data: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(unpacked) = &self.stores else { return Ok(Vec::new()) };
        let mut moved = Vec::new();
        for id in self.manifest.draft_stores() {
            let (store, anchor) = (stores.join(&id), anchor_path(data, &id));
            let restored = unpacked.path().join(&id);
            let restored_anchor = take_anchor(&restored)?;
            for replaced in [&store, &anchor] {
                if replaced.symlink_metadata().is_ok() {
                    let aside = beside(replaced, &format!(".before-{}", moment()));
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

/// This second, as a part of a file name.
fn moment() -> String {
    display::time(now_ms()).chars().filter(|sign| sign.is_ascii_alphanumeric()).collect()
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
    let aside = beside(database, &format!(".before-{}", moment()));
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

/// So that the new name survives a loss of power.
fn sync(folder: &Path) -> io::Result<()> {
    fs_err::File::open(folder)?.sync_all()
}
