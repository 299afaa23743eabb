//! Creates, checks and migrates the file.

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

/// "Moot" in ASCII, as set by `v1.sql`.
const APPLICATION_ID: i64 = 0x4d6f_6f74;

/// Migrations from each format to the next, starting with an empty file. Never change a released
/// entry.
const MIGRATIONS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
];

/// How long a request waits for writers in other processes.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const SQLITE_NOTADB: i32 = 26;

/// Minimum size of a non-empty database in bytes.
const MIN_PAGE_BYTES: u64 = 512;

/// Creates the file if it is missing, rejects foreign files, and migrates to the current format.
pub(crate) async fn prepare(path: &Path) -> Result<(), StoreError> {
    make_file(path)?;
    let mut connection = options(path).connect().await.map_err(|error| refusal(path, error))?;
    let prepared = prepare_connection(path, &mut connection).await;
    connection.close().await?;
    prepared
}

/// The options of every connection.
///
/// `synchronous = FULL` flushes every commit to disk before it is acknowledged. With `NORMAL`, a
/// power failure could lose the last commits and the paid results in them; compared with a model
/// call of several seconds, a flush is negligible.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        // Overwrite deleted content.
        .pragma("secure_delete", "ON")
        .disable_statement_logging()
}

/// The options of the single connection to an in-memory database.
pub(crate) fn memory() -> SqliteConnectOptions {
    SqliteConnectOptions::new().in_memory(true).foreign_keys(true).disable_statement_logging()
}

/// Creates the file here, because SQLite would make it world-readable. SQLite gives its side files
/// (`-wal`, `-shm`) the mode of the main file.
///
/// An existing file is not opened here: when a process closes a file, POSIX drops all locks the
/// process has on it, including those of another store in use. For the same reason a new file is
/// closed before another thread can see it.
pub(crate) fn make_file(path: &Path) -> Result<(), StoreError> {
    static CREATE_LOCK: Mutex<()> = Mutex::new(());
    let _guard = CREATE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot create `{}`: {error}", folder.display()))
        })?;
    }
    match fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // SQLite treats a one-byte file as empty and would overwrite it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match fs_err::metadata(path)?.len() {
                1..MIN_PAGE_BYTES => Err(StoreError::NotADatabase { path: path.to_owned() }),
                _ => Ok(()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn prepare_connection(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    // Check before writing: the file may belong to another program.
    let version = recognise(path, connection).await?;
    if version == 0 {
        // This can only be set on an empty file. It allows the space of deleted runs to be released
        // page by page.
        sqlx::query("PRAGMA auto_vacuum = INCREMENTAL").execute(&mut *connection).await?;
    }
    sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await?;
    if version == newest() {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Check again, because another process may have migrated in the meantime.
    let version = recognise(path, &mut transaction).await?;
    if version > 0 && version < newest() {
        let copy = copy::back_up_old_format(path, version).await?;
        tracing::info!(
            copy = %copy.display(),
            old_format = version,
            new_format = newest(),
            "upgrading the database format; keeping a copy of the old file",
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

/// Maps the error of the first statement, which detects files that are not databases.
fn refusal(path: &Path, error: sqlx::Error) -> StoreError {
    match sqlite_code(&error) {
        Some(SQLITE_NOTADB) => StoreError::NotADatabase { path: path.to_owned() },
        _ => error.into(),
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
