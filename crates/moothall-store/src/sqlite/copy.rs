//! Creates copies of the file while others write, and checks copies before they are used.

use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions as _, Connection as _, SqlitePool};

use super::{SqliteStore, open};
use crate::StoreError;

pub(crate) async fn write(from: &Path, to: &Path) -> Result<(), StoreError> {
    vacuum_into(from, to).await?;
    // Sessions and login codes are not backed up, so that restoring a copy does not revive them.
    let mut copy = open::options(to).connect().await?;
    let deleted =
        sqlx::raw_sql("DELETE FROM sessions; DELETE FROM login_codes").execute(&mut copy).await;
    copy.close().await?;
    deleted?;
    Ok(())
}

/// Copies a file before its format is migrated and returns the path of the copy. The caller holds
/// the write lock, so the copy contains everything written in the old format.
pub(crate) async fn back_up_old_format(path: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let copy = free_name(path, version);
    let written = vacuum_into(path, &copy).await;
    let synced = written.and_then(|()| {
        fs_err::File::open(&copy)?.sync_all()?;
        Ok(())
    });
    if synced.is_err() {
        // Remove a partial copy, which could be mistaken for a complete one. Report the original
        // error.
        let _ = fs_err::remove_file(&copy);
    }
    synced.map(|()| copy)
}

/// `moothall.db.format-3`, with a number appended if that name is taken.
fn free_name(path: &Path, version: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".format-{version}"));
    let first = PathBuf::from(&name);
    let numbered = (2_u32..).map(|number| {
        let mut name = name.clone();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    std::iter::once(first.clone()).chain(numbered).find(is_free).unwrap_or(first)
}

/// Writes all committed data to a new file.
async fn vacuum_into(from: &Path, to: &Path) -> Result<(), StoreError> {
    let name = to.to_str().ok_or(StoreError::Misfit("the path of the copy is not valid UTF-8"))?;
    // Create the empty file first, so that SQLite keeps its restrictive permissions.
    open::make_file(to)?;
    let mut connection = open::options(from).connect().await?;
    let written = sqlx::query("VACUUM INTO ?").bind(name).execute(&mut connection).await;
    connection.close().await?;
    written?;
    Ok(())
}

pub(crate) async fn check(path: &Path) -> Result<u64, StoreError> {
    let store = SqliteStore::open(path).await?;
    let checked = check_content(&store).await;
    store.close().await;
    checked
}

async fn check_content(store: &SqliteStore) -> Result<u64, StoreError> {
    let faults: Vec<String> =
        sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_all(&store.writer).await?;
    if faults != ["ok"] {
        return Err(StoreError::unreadable("database", faults.join("; ")));
    }
    // A foreign trigger or view would run on our reads and writes.
    if schema(&store.writer).await? != schema(&SqliteStore::in_memory().await?.writer).await? {
        return Err(StoreError::unreadable("database", "its schema does not match this program"));
    }
    let runs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(&store.writer).await?;
    Ok(u64::try_from(runs).unwrap_or_default())
}

/// All schema objects of the file.
async fn schema(pool: &SqlitePool) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
    sqlx::query_as("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
        .fetch_all(pool)
        .await
        .map_err(StoreError::from)
}
