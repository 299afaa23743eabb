//! Requested changes to the moves of a consultation.

use moothall_core::RunId;
use moothall_core::consult::ReviewChange;

use super::{PgStore, RowLock, key, lock_row};
use crate::prepared_commit::text;
use crate::{StoreError, rows};

/// Appends changes, all or none.
pub(crate) async fn add(
    store: &PgStore,
    id: &RunId,
    changes: &[ReviewChange],
) -> Result<(), StoreError> {
    let texts: Result<Vec<String>, StoreError> =
        changes.iter().map(|change| text("a change", change)).collect();
    let texts = texts?;
    let mut transaction = store.begin_writing().await?;
    // Lock exclusively: concurrent writers would assign the same numbers.
    lock_row(&mut transaction, id, RowLock::Exclusive).await?;
    sqlx::query(
        "INSERT INTO changes (run_id, seq, change)
         SELECT $1, place + (SELECT coalesce(max(seq), 0) FROM changes WHERE run_id = $1), change
         FROM unnest($2::text[]) WITH ORDINALITY AS offered (change, place)",
    )
    .bind(key(id)?)
    .bind(texts)
    .execute(&mut *transaction)
    .await?;
    Ok(transaction.commit().await?)
}

/// All changes, in the order they were added.
pub(crate) async fn all(store: &PgStore, id: &RunId) -> Result<Vec<ReviewChange>, StoreError> {
    let rows = sqlx::query("SELECT change FROM changes WHERE run_id = $1 ORDER BY seq")
        .bind(key(id)?)
        .fetch_all(&store.pool)
        .await?;
    let rows = store.or_unknown(id, rows).await?;
    rows.iter().map(rows::change).collect()
}

/// Deletes all changes.
pub(crate) async fn forget(store: &PgStore, id: &RunId) -> Result<(), StoreError> {
    let done = sqlx::query("DELETE FROM changes WHERE run_id = $1")
        .bind(key(id)?)
        .execute(&store.pool)
        .await?;
    store.ensure_known(id, done.rows_affected()).await
}
