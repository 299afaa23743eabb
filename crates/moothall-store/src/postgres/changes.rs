//! What persons want changed in the moves of a consultation.

use moothall_core::RunId;
use moothall_core::consult::Change;

use super::{Hold, PgStore, hold, key};
use crate::prepared::text;
use crate::{StoreError, rows};

/// Adds changes behind those that are there, all of them or none.
pub(super) async fn add(store: &PgStore, id: &RunId, changes: &[Change]) -> Result<(), StoreError> {
    let texts: Result<Vec<String>, StoreError> =
        changes.iter().map(|change| text("a change", change)).collect();
    let texts = texts?;
    let mut transaction = store.begin_writing().await?;
    // Two who add at the same time would take the same numbers.
    hold(&mut transaction, id, Hold::Alone).await?;
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

/// The changes in the order in which they came.
pub(super) async fn all(store: &PgStore, id: &RunId) -> Result<Vec<Change>, StoreError> {
    let rows = sqlx::query("SELECT change FROM changes WHERE run_id = $1 ORDER BY seq")
        .bind(key(id)?)
        .fetch_all(&store.pool)
        .await?;
    let rows = store.or_unknown(id, rows).await?;
    rows.iter().map(rows::change).collect()
}

/// Takes all of them back.
pub(super) async fn forget(store: &PgStore, id: &RunId) -> Result<(), StoreError> {
    let done = sqlx::query("DELETE FROM changes WHERE run_id = $1")
        .bind(key(id)?)
        .execute(&store.pool)
        .await?;
    store.ensure_known(id, done.rows_affected()).await
}
