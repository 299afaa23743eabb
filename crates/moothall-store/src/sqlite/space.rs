//! Disk usage of runs, and reclaiming it.

use moothall_core::RunId;
use sqlx::{AssertSqlSafe, SqlitePool};

use crate::StoreError;

/// Pages released per step. Others can write between steps; releasing everything at once could
/// exceed their timeout.
const PAGES_PER_STEP: u32 = 1_000;

/// Value of `PRAGMA auto_vacuum` for files that can release pages incrementally. All files created
/// by this program can.
const INCREMENTAL: i64 = 2;

pub(crate) async fn run_bytes(readers: &SqlitePool, id: &RunId) -> Result<u64, StoreError> {
    let bytes: Option<i64> = sqlx::query_scalar(
        "SELECT octet_length(input) + ifnull(octet_length(outcome), 0)
              + (SELECT ifnull(sum(octet_length(result)), 0) FROM journal
                 WHERE journal.run = runs.run)
              + (SELECT ifnull(sum(octet_length(body)), 0) FROM events WHERE events.run = runs.run)
              + (SELECT ifnull(sum(octet_length(content)), 0) FROM artifacts
                 WHERE artifacts.run = runs.run)
         FROM runs WHERE run_id = ?",
    )
    .bind(id.as_str())
    .fetch_optional(readers)
    .await?;
    let bytes = bytes.ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

pub(crate) async fn delete(writer: &SqlitePool, ids: &[RunId]) -> Result<(), StoreError> {
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
    for id in ids {
        // `ON DELETE CASCADE` removes everything else.
        sqlx::query("DELETE FROM runs WHERE run_id = ?")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    checkpoint(writer).await
}

pub(crate) async fn reclaim_space(writer: &SqlitePool) -> Result<u64, StoreError> {
    let before = number(writer, "PRAGMA page_count").await?;
    if number(writer, "PRAGMA auto_vacuum").await? == INCREMENTAL {
        let mut free = number(writer, "PRAGMA freelist_count").await?;
        while free > 0 {
            let step = AssertSqlSafe(format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"));
            sqlx::raw_sql(step).execute(writer).await?;
            let left = number(writer, "PRAGMA freelist_count").await?;
            // Stop if a step frees nothing, for example because others delete in the meantime; otherwise
            // this could loop forever.
            if left >= free {
                break;
            }
            free = left;
        }
    } else {
        // A file of an early build: rewrite it once as a whole.
        sqlx::raw_sql("PRAGMA auto_vacuum = INCREMENTAL; VACUUM").execute(writer).await?;
    }
    checkpoint(writer).await?;
    let pages = before.saturating_sub(number(writer, "PRAGMA page_count").await?);
    let size = number(writer, "PRAGMA page_size").await?;
    Ok(u64::try_from(pages.saturating_mul(size)).unwrap_or_default())
}

/// Truncates the `-wal` file, which still contains deleted content. If a reader blocks this, it
/// does nothing and the next checkpoint does it.
async fn checkpoint(writer: &SqlitePool) -> Result<(), StoreError> {
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(writer).await?;
    Ok(())
}

async fn number(writer: &SqlitePool, pragma: &'static str) -> Result<i64, StoreError> {
    sqlx::query_scalar(pragma).fetch_one(writer).await.map_err(StoreError::from)
}
