//! What happened after a consultation.

use moothall_core::RunId;
use moothall_core::consult::RunOutcomes;

use super::{PgStore, key};
use crate::prepared_commit::text;
use crate::{StoreError, rows};

pub(crate) async fn set(
    store: &PgStore,
    id: &RunId,
    outcomes: &RunOutcomes,
) -> Result<(), StoreError> {
    let done = sqlx::query("UPDATE runs SET later_outcomes = $1 WHERE run_id = $2")
        .bind(text("recorded outcomes", outcomes)?)
        .bind(key(id)?)
        .execute(&store.pool)
        .await?;
    store.ensure_known(id, done.rows_affected()).await
}

pub(crate) async fn get(store: &PgStore, id: &RunId) -> Result<Option<RunOutcomes>, StoreError> {
    let row = sqlx::query("SELECT later_outcomes FROM runs WHERE run_id = $1")
        .bind(key(id)?)
        .fetch_optional(&store.pool)
        .await?;
    rows::later_outcomes(&row.ok_or_else(|| StoreError::UnknownRun(id.clone()))?)
}

pub(crate) async fn runs(store: &PgStore) -> Result<Vec<RunId>, StoreError> {
    let rows = sqlx::query(
        "SELECT run_id::text AS run_id FROM runs WHERE later_outcomes IS NOT NULL ORDER BY run_id",
    )
    .fetch_all(&store.pool)
    .await?;
    rows.iter().map(rows::id).collect()
}
