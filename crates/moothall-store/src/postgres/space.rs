//! Disk usage of runs, and reclaiming it.

use moothall_core::RunId;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::key;
use crate::StoreError;

pub(crate) async fn run_bytes(pool: &PgPool, id: &RunId) -> Result<u64, StoreError> {
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

pub(crate) async fn delete(pool: &PgPool, ids: &[RunId]) -> Result<(), StoreError> {
    let mut keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
    // Sort, so that concurrent deletions lock rows in the same order and cannot deadlock.
    keys.sort_unstable();
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT 1 FROM runs WHERE run_id = ANY ($1) ORDER BY run_id FOR UPDATE")
        .bind(&keys)
        .execute(&mut *transaction)
        .await?;
    // `ON DELETE CASCADE` removes everything else.
    sqlx::query("DELETE FROM runs WHERE run_id = ANY ($1)")
        .bind(&keys)
        .execute(&mut *transaction)
        .await?;
    Ok(transaction.commit().await?)
}

/// Makes the space of deleted runs reusable and truncates free space at the end of files. A plain
/// vacuum takes no exclusive lock, so free space in the middle of a file stays allocated.
pub(crate) async fn reclaim_space(pool: &PgPool) -> Result<u64, StoreError> {
    let before = size(pool).await?;
    let mut connection = pool.acquire().await?;
    // A vacuum may take longer than the timeouts. The setting ends with the connection, which is
    // not returned to the pool.
    let statements = "SET statement_timeout = 0; SET lock_timeout = 0";
    sqlx::raw_sql(statements).execute(&mut *connection).await?;
    for table in ["runs", "events", "journal", "artifacts"] {
        let vacuum = sqlx::AssertSqlSafe(format!("VACUUM {table}"));
        sqlx::raw_sql(vacuum).execute(&mut *connection).await?;
    }
    // The work is done, so ignore errors on close.
    let _ = connection.close().await;
    let freed = before.saturating_sub(size(pool).await?);
    Ok(u64::try_from(freed).unwrap_or_default())
}

/// Size of all our tables including indexes.
async fn size(pool: &PgPool) -> Result<i64, StoreError> {
    sqlx::query_scalar(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
    )
    .fetch_one(pool)
    .await
    .map_err(StoreError::from)
}
