//! Copies of the file: made while others write, and looked at before they are trusted.

use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions as _, Connection as _, SqlitePool};

use super::{SqliteStore, open};
use crate::StoreError;

pub(super) async fn write(from: &Path, to: &Path) -> Result<(), StoreError> {
    vacuum_into(from, to).await?;
    // Who is signed in now is not worth keeping; and what a copy holds may come back.
    let mut copy = open::options(to).connect().await?;
    let forgotten =
        sqlx::raw_sql("DELETE FROM sessions; DELETE FROM login_codes").execute(&mut copy).await;
    copy.close().await?;
    forgotten?;
    Ok(())
}

/// Copies a file whose format is about to change, beside it, and returns the name of the copy. The caller
/// holds the write lock, so that the copy is all that the old format ever held.
pub(super) async fn keep_old_format(path: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let copy = free_name(path, version);
    let written = vacuum_into(path, &copy).await;
    let synced = written.and_then(|()| {
        fs_err::File::open(&copy)?.sync_all()?;
        Ok(())
    });
    if synced.is_err() {
        // Half a copy would be taken for a whole one. The first error is the one to tell.
        let _ = fs_err::remove_file(&copy);
    }
    synced.map(|()| copy)
}

/// `moothall.db.format-3`; with a number behind it where an earlier copy has that name.
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

/// Writes everything that is committed into a new file.
async fn vacuum_into(from: &Path, to: &Path) -> Result<(), StoreError> {
    let name = to.to_str().ok_or(StoreError::Misfit("the name of the copy is not text"))?;
    // SQLite writes into an empty file, and leaves it as closed to others as it is.
    open::make_file(to)?;
    let mut connection = open::options(from).connect().await?;
    let written = sqlx::query("VACUUM INTO ?").bind(name).execute(&mut connection).await;
    connection.close().await?;
    written?;
    Ok(())
}

pub(super) async fn check(path: &Path) -> Result<u64, StoreError> {
    let store = SqliteStore::open(path).await?;
    let checked = look(&store).await;
    store.close().await;
    checked
}

async fn look(store: &SqliteStore) -> Result<u64, StoreError> {
    let faults: Vec<String> =
        sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_all(&store.writer).await?;
    if faults != ["ok"] {
        return Err(StoreError::unreadable("database", faults.join("; ")));
    }
    // A trigger or a view of somebody else would work whenever we write or read.
    if schema(&store.writer).await? != schema(&SqliteStore::in_memory().await?.writer).await? {
        return Err(StoreError::unreadable("database", "its tables are not those of this program"));
    }
    let runs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(&store.writer).await?;
    Ok(u64::try_from(runs).unwrap_or_default())
}

/// Everything that the file is made of but its content.
async fn schema(pool: &SqlitePool) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
    sqlx::query_as("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
        .fetch_all(pool)
        .await
        .map_err(StoreError::from)
}
