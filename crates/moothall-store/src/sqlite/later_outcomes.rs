//! What happened after a consultation.

use moothall_core::RunId;
use moothall_core::consult::RunOutcomes;

use super::SqliteStore;
use crate::prepared_commit::text;
use crate::{StoreError, rows};

pub(crate) async fn set(
    store: &SqliteStore,
    id: &RunId,
    outcomes: &RunOutcomes,
) -> Result<(), StoreError> {
    let done = sqlx::query("UPDATE runs SET later_outcomes = ? WHERE run_id = ?")
        .bind(text("recorded outcomes", outcomes)?)
        .bind(id.as_str())
        .execute(&store.writer)
        .await?;
    store.ensure_known(id, done.rows_affected()).await
}

pub(crate) async fn get(
    store: &SqliteStore,
    id: &RunId,
) -> Result<Option<RunOutcomes>, StoreError> {
    let row = sqlx::query("SELECT later_outcomes FROM runs WHERE run_id = ?")
        .bind(id.as_str())
        .fetch_optional(&store.readers)
        .await?;
    rows::later_outcomes(&row.ok_or_else(|| StoreError::UnknownRun(id.clone()))?)
}

pub(crate) async fn runs(store: &SqliteStore) -> Result<Vec<RunId>, StoreError> {
    let rows =
        sqlx::query("SELECT run_id FROM runs WHERE later_outcomes IS NOT NULL ORDER BY run_id")
            .fetch_all(&store.readers)
            .await?;
    rows.iter().map(rows::id).collect()
}
