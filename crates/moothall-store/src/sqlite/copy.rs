//! Copies of the file: made while others write, and looked at before they are trusted.

use std::path::Path;

use sqlx::{ConnectOptions as _, Connection as _, SqlitePool};

use super::{SqliteStore, database_error, open};
use crate::StoreError;

pub(super) async fn write(from: &Path, to: &Path) -> Result<(), StoreError> {
    let name = to.to_str().ok_or(StoreError::Misfit("the name of the copy is not text"))?;
    // SQLite writes into an empty file, and leaves it as closed to others as it is.
    open::make_file(to)?;
    let mut connection = open::options(from).connect().await.map_err(database_error)?;
    let written = sqlx::query("VACUUM INTO ?").bind(name).execute(&mut connection).await;
    connection.close().await.map_err(database_error)?;
    written.map_err(database_error)?;
    // Who is signed in now is not worth keeping; and what a copy holds may come back.
    let mut copy = open::options(to).connect().await.map_err(database_error)?;
    let forgotten =
        sqlx::raw_sql("DELETE FROM sessions; DELETE FROM login_codes").execute(&mut copy).await;
    copy.close().await.map_err(database_error)?;
    forgotten.map_err(database_error)?;
    Ok(())
}

pub(super) async fn check(path: &Path) -> Result<u64, StoreError> {
    let store = SqliteStore::open(path).await?;
    let checked = look(&store).await;
    store.close().await;
    checked
}

async fn look(store: &SqliteStore) -> Result<u64, StoreError> {
    let faults: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(1)")
        .fetch_all(&store.writer)
        .await
        .map_err(database_error)?;
    if faults != ["ok"] {
        return Err(StoreError::unreadable("database", faults.join("; ")));
    }
    // A trigger or a view of somebody else would work whenever we write or read.
    if schema(&store.writer).await? != schema(&SqliteStore::in_memory().await?.writer).await? {
        return Err(StoreError::unreadable("database", "its tables are not those of this program"));
    }
    let runs: i64 = sqlx::query_scalar("SELECT count(*) FROM runs")
        .fetch_one(&store.writer)
        .await
        .map_err(database_error)?;
    Ok(u64::try_from(runs).unwrap_or_default())
}

/// Everything that the file is made of but its content.
async fn schema(pool: &SqlitePool) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
    sqlx::query_as("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
        .fetch_all(pool)
        .await
        .map_err(database_error)
}
