//! Artifacts of a run, addressed by the hash of their content.

use moothall_core::{RunId, Sha256Hex};
use sqlx::postgres::PgPool;

use super::{PgRunHead, PgStore, RowLock, key, lock_row};
use crate::{StoreError, validation};

pub(crate) async fn keep(
    store: &PgStore,
    id: &RunId,
    content: &[u8],
) -> Result<Sha256Hex, StoreError> {
    let sha256 = validation::hash_artifact(content)?;
    let mut transaction = store.begin_writing().await?;
    let PgRunHead { state, .. } = lock_row(&mut transaction, id, RowLock::Shared).await?;
    if state.is_terminal() {
        // An ended run accepts only artifacts that it already has.
        let kept: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM artifacts
                            WHERE run_id = $1 AND sha256 = decode($2, 'hex'))",
        )
        .bind(key(id)?)
        .bind(sha256.to_string())
        .fetch_one(&mut *transaction)
        .await?;
        return match kept {
            true => Ok(sha256),
            false => Err(StoreError::RunEnded { run_id: id.clone(), state }),
        };
    }
    sqlx::query(
        "INSERT INTO artifacts (run_id, sha256, content) VALUES ($1, decode($2, 'hex'), $3)
         ON CONFLICT (run_id, sha256) DO NOTHING",
    )
    .bind(key(id)?)
    .bind(sha256.to_string())
    .bind(content)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(sha256)
}

/// `None` if the artifact or the run does not exist.
pub(crate) async fn find(
    pool: &PgPool,
    id: &RunId,
    sha256: &Sha256Hex,
) -> Result<Option<Vec<u8>>, StoreError> {
    let content: Option<Vec<u8>> = sqlx::query_scalar(
        "SELECT content FROM artifacts WHERE run_id = $1 AND sha256 = decode($2, 'hex')",
    )
    .bind(key(id)?)
    .bind(sha256.to_string())
    .fetch_optional(pool)
    .await?;
    validation::check_artifact(content, sha256)
}
