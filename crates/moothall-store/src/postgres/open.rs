//! Making, recognising and upgrading the tables.

use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use super::address::{PgAddress, SCHEMA};
use crate::StoreError;

/// How to get from each format to the next, from an empty database on. An entry that was released
/// is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_runs.sql"),
    include_str!("../../migrations/postgres/0002_purse.sql"),
    include_str!("../../migrations/postgres/0003_page_word.sql"),
];

/// The oldest PostgreSQL that the tests ran on, as it numbers itself.
const OLDEST: i32 = 150_000;

/// Whoever upgrades holds this lock: "Moot" in ASCII.
const UPGRADE_LOCK: i64 = 0x4d6f_6f74;

/// Refuses a server that would lose runs and tables that are not ours, and brings the format up to
/// date.
pub(super) async fn prepare(address: &PgAddress) -> Result<(), StoreError> {
    let mut connection = address.options().connect().await?;
    let prepared = prepare_connection(address, &mut connection).await;
    // Whatever it says: the answer is known.
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
    // Others that come at the same time wait for us; however long it takes, it is not stuck.
    sqlx::raw_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        .execute(&mut *transaction)
        .await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(UPGRADE_LOCK)
        .execute(&mut *transaction)
        .await?;
    // Again: another process may have been faster.
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

/// A server that acknowledges what it has not written would make us lose what was paid for.
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
    let problem = if version.parse::<i32>().is_ok_and(|version| version < OLDEST) {
        "it is older than PostgreSQL 15"
    } else if encoding != "UTF8" {
        "its encoding is not UTF8"
    } else if fsync == "off" {
        "its setting `fsync` is off, so a crash could damage it"
    } else if synchronous == "off" {
        "its setting `synchronous_commit` is off, so a crash could take back what it said is kept"
    } else {
        return Ok(());
    };
    Err(StoreError::Unsuitable { place: address.place(), problem })
}

/// The format of tables that are ours; 0 where there are none.
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
            _ => Err(StoreError::ForeignDatabase { path: address.place().into() }),
        };
    }
    let found: i64 =
        sqlx::query_scalar("SELECT version FROM moothall.format").fetch_one(connection).await?;
    if found > newest() {
        let path = address.place().into();
        return Err(StoreError::NewerFormat { path, found, known: newest() });
    }
    Ok(found)
}
