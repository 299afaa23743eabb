//! What persons want changed in the moves of a consultation.

use moothall_core::RunId;
use moothall_core::consult::Change;

use super::SqliteStore;
use crate::prepared::text;
use crate::{StoreError, rows};

/// Adds changes behind those that are there, all of them or none.
pub(super) async fn add(
    store: &SqliteStore,
    id: &RunId,
    changes: &[Change],
) -> Result<(), StoreError> {
    let texts: Result<Vec<String>, StoreError> =
        changes.iter().map(|change| text("a change", change)).collect();
    let texts = texts?;
    // The write lock first, as for a commit.
    let mut transaction = store.begin_writing().await?;
    for text in texts {
        let done = sqlx::query(
            "INSERT INTO changes (run, seq, change)
             SELECT run, 1 + (SELECT coalesce(max(seq), 0) FROM changes WHERE run = runs.run), ?
             FROM runs WHERE run_id = ?",
        )
        .bind(text)
        .bind(id.as_str())
        .execute(&mut *transaction)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::UnknownRun(id.clone()));
        }
    }
    Ok(transaction.commit().await?)
}

/// The changes in the order in which they came.
pub(super) async fn all(store: &SqliteStore, id: &RunId) -> Result<Vec<Change>, StoreError> {
    let rows = sqlx::query(
        "SELECT change FROM changes JOIN runs USING (run) WHERE run_id = ? ORDER BY seq",
    )
    .bind(id.as_str())
    .fetch_all(&store.readers)
    .await?;
    let rows = store.or_unknown(id, rows).await?;
    rows.iter().map(rows::change).collect()
}

/// Takes all of them back.
pub(super) async fn forget(store: &SqliteStore, id: &RunId) -> Result<(), StoreError> {
    let done =
        sqlx::query("DELETE FROM changes WHERE run = (SELECT run FROM runs WHERE run_id = ?)")
            .bind(id.as_str())
            .execute(&store.writer)
            .await?;
    store.ensure_known(id, done.rows_affected()).await
}
