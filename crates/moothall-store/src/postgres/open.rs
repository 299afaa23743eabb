//! Creates, checks and migrates the tables.

use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use super::address::{PgAddress, SCHEMA};
use crate::StoreError;

/// Migrations from each format to the next, starting with an empty database. Never change a
/// released entry.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_runs.sql"),
    include_str!("../../migrations/postgres/0002_purse.sql"),
    include_str!("../../migrations/postgres/0003_page_word.sql"),
    include_str!("../../migrations/postgres/0004_limiter_quotas.sql"),
    include_str!("../../migrations/postgres/0005_later_outcomes.sql"),
];

/// The oldest PostgreSQL version covered by tests, as `server_version_num`.
const MIN_SERVER_VERSION: i32 = 150_000;

/// Advisory lock held during a migration: "Moot" in ASCII.
const UPGRADE_LOCK: i64 = 0x4d6f_6f74;

/// Rejects servers that could lose data and tables of other programs, and migrates to the current
/// format.
pub(crate) async fn prepare(address: &PgAddress) -> Result<(), StoreError> {
    let mut connection = address.options().connect().await?;
    let prepared = prepare_connection(address, &mut connection).await;
    // The result is already known, so ignore errors on close.
    let _ = connection.close().await;
    prepared
}

async fn prepare_connection(
    address: &PgAddress,
    connection: &mut PgConnection,
) -> Result<(), StoreError> {
    check_server(address, connection).await?;
    if recognise(address, connection).await? == newest() {
        return Ok(());
    }
    let mut transaction = connection.begin().await?;
    // Concurrent processes wait for this migration; it may take longer than the timeouts.
    sqlx::raw_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        .execute(&mut *transaction)
        .await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(UPGRADE_LOCK)
        .execute(&mut *transaction)
        .await?;
    // Check again, because another process may have migrated in the meantime.
    let version = recognise(address, &mut transaction).await?;
    if version == 0 {
        sqlx::raw_sql(
            "CREATE SCHEMA IF NOT EXISTS moothall;
             CREATE TABLE moothall.format (version bigint NOT NULL);
             INSERT INTO moothall.format VALUES (0)",
        )
        .execute(&mut *transaction)
        .await?;
    }
    for (from, script) in (0..).zip(MIGRATIONS).skip_while(|(from, _)| *from < version) {
        sqlx::raw_sql(*script).execute(&mut *transaction).await?;
        sqlx::query("UPDATE format SET version = $1")
            .bind(from + 1_i64)
            .execute(&mut *transaction)
            .await?;
    }
    Ok(transaction.commit().await?)
}

fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Rejects a server that acknowledges writes before they are durable, because paid results could be
/// lost.
async fn check_server(
    address: &PgAddress,
    connection: &mut PgConnection,
) -> Result<(), StoreError> {
    let (version, encoding, fsync, synchronous): (String, String, String, String) = sqlx::query_as(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding'),
                current_setting('fsync'), current_setting('synchronous_commit')",
    )
    .fetch_one(connection)
    .await?;
    let problem = if version.parse::<i32>().is_ok_and(|version| version < MIN_SERVER_VERSION) {
        "PostgreSQL 15 or newer is required"
    } else if encoding != "UTF8" {
        "its encoding is not UTF8"
    } else if fsync == "off" {
        "`fsync` is off, so a crash could corrupt it"
    } else if synchronous == "off" {
        "`synchronous_commit` is off, so a crash could lose committed data"
    } else {
        return Ok(());
    };
    Err(StoreError::Unsuitable { place: address.location(), problem })
}

/// The format of our tables; 0 if there are none.
async fn recognise(address: &PgAddress, connection: &mut PgConnection) -> Result<i64, StoreError> {
    let (ours, entries): (bool, i64) = sqlx::query_as(
        "SELECT to_regclass($1 || '.format') IS NOT NULL,
                (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1))",
    )
    .bind(SCHEMA)
    .fetch_one(&mut *connection)
    .await?;
    if !ours {
        return match entries {
            0 => Ok(0),
            _ => Err(StoreError::ForeignDatabase { path: address.location().into() }),
        };
    }
    let found: i64 =
        sqlx::query_scalar("SELECT version FROM moothall.format").fetch_one(connection).await?;
    if found > newest() {
        let path = address.location().into();
        return Err(StoreError::NewerFormat { path, found, known: newest() });
    }
    Ok(found)
}
