//! Making, recognising and upgrading the file.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

use super::copy;
use crate::StoreError;
use crate::error::sqlite_code;

/// "Moot" in ASCII, as `v1.sql` writes it.
const APPLICATION_ID: i64 = 0x4d6f_6f74;

/// How to get from each format to the next, from an empty file on. An entry that was released is
/// never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
];

/// How long a request waits for other processes that write.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const SQLITE_NOTADB: i32 = 26;

/// No database that holds anything is smaller, in bytes.
const SMALLEST_PAGE: u64 = 512;

/// Makes the file if it is missing, refuses what is not ours, and brings the format up to date.
pub(super) async fn prepare(path: &Path) -> Result<(), StoreError> {
    make_file(path)?;
    let mut connection = options(path).connect().await.map_err(|error| refusal(path, error))?;
    let prepared = prepare_connection(path, &mut connection).await;
    connection.close().await?;
    prepared
}

/// How every connection is made.
///
/// `synchronous = FULL`: every commit is flushed to the disk before it is acknowledged. With
/// `NORMAL` a loss of power could take back the last commits, and with them answers that were paid
/// for; next to the seconds of a model call, one flush is nothing.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        // What was deleted is overwritten, not merely unlinked.
        .pragma("secure_delete", "ON")
        .disable_statement_logging()
}

/// How the one connection to a database without a file is made.
pub(super) fn memory() -> SqliteConnectOptions {
    SqliteConnectOptions::new().in_memory(true).foreign_keys(true).disable_statement_logging()
}

/// The file is made here rather than by SQLite, which would make it readable for everyone. SQLite
/// gives its side files (`-wal`, `-shm`) the mode of the main file.
///
/// A file that exists is not opened here: when a process closes a file, POSIX drops all locks the
/// process has on it, also those of another store that is at work. For the same reason a new file
/// is closed before another thread can see that it exists.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make `{}`: {error}", folder.display()))
        })?;
    }
    match fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // SQLite takes a file of one byte for an empty one and would write over it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match fs_err::metadata(path)?.len() {
                1..SMALLEST_PAGE => Err(StoreError::NotADatabase { path: path.to_owned() }),
                _ => Ok(()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn prepare_connection(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    // Before anything is written: the file may belong to someone else.
    let version = recognise(path, connection).await?;
    if version == 0 {
        // Only an empty file takes it; with it, deleted runs can be given back page by page.
        sqlx::query("PRAGMA auto_vacuum = INCREMENTAL").execute(&mut *connection).await?;
    }
    sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await?;
    if version == newest() {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Again: another process may have been faster.
    let version = recognise(path, &mut transaction).await?;
    if version > 0 && version < newest() {
        let copy = copy::keep_old_format(path, version).await?;
        tracing::info!(
            copy = %copy.display(),
            old_format = version,
            new_format = newest(),
            "upgrading the format of the database; a copy of the old one is kept",
        );
    }
    for (from, script) in (0..).zip(MIGRATIONS).skip_while(|(from, _)| *from < version) {
        sqlx::raw_sql(*script).execute(&mut *transaction).await?;
        let mark = format!("PRAGMA user_version = {}", from + 1);
        sqlx::raw_sql(AssertSqlSafe(mark)).execute(&mut *transaction).await?;
    }
    Ok(transaction.commit().await?)
}

fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The format of a file that is ours or empty.
async fn recognise(path: &Path, connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let (application, version, entries): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT application_id FROM pragma_application_id),
                (SELECT user_version FROM pragma_user_version),
                (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(connection)
    .await
    .map_err(|error| refusal(path, error))?;
    let ours = application == APPLICATION_ID;
    let empty = (application, version, entries) == (0, 0, 0);
    if !ours && !empty {
        return Err(StoreError::ForeignDatabase { path: path.to_owned() });
    }
    if version > newest() {
        let path = path.to_owned();
        return Err(StoreError::NewerFormat { path, found: version, known: newest() });
    }
    Ok(version)
}

/// Whichever statement is the first to look into the file finds out what it is.
fn refusal(path: &Path, error: sqlx::Error) -> StoreError {
    match sqlite_code(&error) {
        Some(SQLITE_NOTADB) => StoreError::NotADatabase { path: path.to_owned() },
        _ => error.into(),
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
