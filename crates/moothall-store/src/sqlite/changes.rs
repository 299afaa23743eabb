//! Requested changes to the moves of a consultation.

use moothall_core::RunId;
use moothall_core::consult::ReviewChange;

use super::SqliteStore;
use crate::prepared_commit::text;
use crate::{StoreError, rows};

/// Appends changes, all or none.
pub(crate) async fn add(
    store: &SqliteStore,
    id: &RunId,
    changes: &[ReviewChange],
) -> Result<(), StoreError> {
    let texts: Result<Vec<String>, StoreError> =
        changes.iter().map(|change| text("a change", change)).collect();
    let texts = texts?;
    // Takes the write lock first, as a commit does.
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

/// All changes, in the order they were added.
pub(crate) async fn all(store: &SqliteStore, id: &RunId) -> Result<Vec<ReviewChange>, StoreError> {
    let rows = sqlx::query(
        "SELECT change FROM changes JOIN runs USING (run) WHERE run_id = ? ORDER BY seq",
    )
    .bind(id.as_str())
    .fetch_all(&store.readers)
    .await?;
    let rows = store.or_unknown(id, rows).await?;
    rows.iter().map(rows::change).collect()
}

/// Deletes all changes.
pub(crate) async fn forget(store: &SqliteStore, id: &RunId) -> Result<(), StoreError> {
    let done =
        sqlx::query("DELETE FROM changes WHERE run = (SELECT run FROM runs WHERE run_id = ?)")
            .bind(id.as_str())
            .execute(&store.writer)
            .await?;
    store.ensure_known(id, done.rows_affected()).await
}
