//! What runs take in the database, and how it is given back.

use moothall_core::RunId;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::key;
use crate::StoreError;

pub(super) async fn run_bytes(pool: &PgPool, id: &RunId) -> Result<u64, StoreError> {
    let bytes: Option<i64> = sqlx::query_scalar(
        "SELECT (octet_length(input) + coalesce(octet_length(outcome), 0)
              + (SELECT coalesce(sum(octet_length(result)), 0) FROM journal WHERE run_id = $1)
              + (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE run_id = $1)
              + (SELECT coalesce(sum(octet_length(content)), 0) FROM artifacts WHERE run_id = $1)
               )::bigint
         FROM runs WHERE run_id = $1",
    )
    .bind(key(id)?)
    .fetch_optional(pool)
    .await?;
    let bytes = bytes.ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

pub(super) async fn delete(pool: &PgPool, ids: &[RunId]) -> Result<(), StoreError> {
    let mut keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
    // Two who delete the same runs take their rows in the same order, and do not block each other.
    keys.sort_unstable();
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT 1 FROM runs WHERE run_id = ANY ($1) ORDER BY run_id FOR UPDATE")
        .bind(&keys)
        .execute(&mut *transaction)
        .await?;
    // The rest goes with it: `ON DELETE CASCADE`.
    sqlx::query("DELETE FROM runs WHERE run_id = ANY ($1)")
        .bind(&keys)
        .execute(&mut *transaction)
        .await?;
    Ok(transaction.commit().await?)
}

/// Lets new runs take the place of deleted ones, and cuts off what is free at the end of files.
/// A plain vacuum locks nobody out, so what is free in the middle stays the database's.
pub(super) async fn give_back(pool: &PgPool) -> Result<u64, StoreError> {
    let before = size(pool).await?;
    let mut connection = pool.acquire().await?;
    // Not stuck, however long it takes. The setting goes with the connection, which is not given
    // back to the pool.
    let statements = "SET statement_timeout = 0; SET lock_timeout = 0";
    sqlx::raw_sql(statements).execute(&mut *connection).await?;
    for table in ["runs", "events", "journal", "artifacts"] {
        let vacuum = sqlx::AssertSqlSafe(format!("VACUUM {table}"));
        sqlx::raw_sql(vacuum).execute(&mut *connection).await?;
    }
    // Whatever it says: the work is done.
    let _ = connection.close().await;
    let freed = before.saturating_sub(size(pool).await?);
    Ok(u64::try_from(freed).unwrap_or_default())
}

/// Bytes of all our tables with their indices.
async fn size(pool: &PgPool) -> Result<i64, StoreError> {
    sqlx::query_scalar(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
    )
    .fetch_one(pool)
    .await
    .map_err(StoreError::from)
}
