//! Artifacts of a run, addressed by the hash of their content.

use moothall_core::{RunId, Sha256Hex};
use sqlx::{Row as _, SqlitePool};

use super::SqliteStore;
use crate::{StoreError, rows, validation};

pub(crate) async fn keep(
    store: &SqliteStore,
    id: &RunId,
    content: &[u8],
) -> Result<Sha256Hex, StoreError> {
    let sha256 = validation::hash_artifact(content)?;
    let mut transaction = store.begin_writing().await?;
    let row = sqlx::query(
        "SELECT run, state, EXISTS (SELECT 1 FROM artifacts
                                    WHERE artifacts.run = runs.run AND sha256 = ?) AS kept
         FROM runs WHERE run_id = ?",
    )
    .bind(sha256.to_string())
    .bind(id.as_str())
    .fetch_optional(&mut *transaction)
    .await?
    .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    let state = rows::run_state(&row)?;
    if row.try_get("kept")? {
        return Ok(sha256);
    }
    if state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state });
    }
    sqlx::query("INSERT INTO artifacts (run, sha256, content) VALUES (?, ?, ?)")
        .bind(row.try_get::<i64, _>("run")?)
        .bind(sha256.to_string())
        .bind(content)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(sha256)
}

/// `None` if the artifact or the run does not exist.
pub(crate) async fn find(
    readers: &SqlitePool,
    id: &RunId,
    sha256: &Sha256Hex,
) -> Result<Option<Vec<u8>>, StoreError> {
    let content: Option<Vec<u8>> = sqlx::query_scalar(
        "SELECT content FROM artifacts JOIN runs USING (run) WHERE run_id = ? AND sha256 = ?",
    )
    .bind(id.as_str())
    .bind(sha256.to_string())
    .fetch_optional(readers)
    .await?;
    validation::check_artifact(content, sha256)
}
