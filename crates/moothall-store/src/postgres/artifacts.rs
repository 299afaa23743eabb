//! Files of a run, by the hash of their bytes.

use moothall_core::{RunId, Sha256Hex};
use sqlx::postgres::PgPool;

use super::{Found, Hold, PgStore, hold, key};
use crate::{StoreError, rules};

pub(super) async fn keep(
    store: &PgStore,
    id: &RunId,
    content: &[u8],
) -> Result<Sha256Hex, StoreError> {
    let sha256 = rules::name_artifact(content)?;
    let mut transaction = store.begin_writing().await?;
    let Found { state, .. } = hold(&mut transaction, id, Hold::Shared).await?;
    if state.is_terminal() {
        // Only what is there already may be kept again.
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

/// `None`: there is no such file, or no such run.
pub(super) async fn find(
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
    rules::check_artifact(content, sha256)
}
