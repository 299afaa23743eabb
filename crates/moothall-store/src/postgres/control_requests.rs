//! Control requests for a run.

use std::collections::BTreeSet;

use moothall_core::RunId;
use uuid::Uuid;

use super::{PgRunHead, PgStore, RowLock, key, lock_row};
use crate::{ControlRequest, StoreError, rows};

/// Adds a control request, if it is not already there.
pub(crate) async fn add(
    store: &PgStore,
    id: &RunId,
    request: ControlRequest,
) -> Result<(), StoreError> {
    let mut transaction = store.begin_writing().await?;
    let PgRunHead { state, .. } = lock_row(&mut transaction, id, RowLock::Shared).await?;
    if state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state });
    }
    sqlx::query(
        "INSERT INTO wishes (run_id, wish) VALUES ($1, $2) ON CONFLICT (run_id, wish) DO NOTHING",
    )
    .bind(key(id)?)
    .bind(request.as_str())
    .execute(&mut *transaction)
    .await?;
    Ok(transaction.commit().await?)
}

pub(crate) async fn remove(
    store: &PgStore,
    id: &RunId,
    request: ControlRequest,
) -> Result<(), StoreError> {
    let done = sqlx::query("DELETE FROM wishes WHERE run_id = $1 AND wish = $2")
        .bind(key(id)?)
        .bind(request.as_str())
        .execute(&store.pool)
        .await?;
    store.ensure_known(id, done.rows_affected()).await
}

pub(crate) async fn all(
    store: &PgStore,
    id: &RunId,
) -> Result<BTreeSet<ControlRequest>, StoreError> {
    let rows = sqlx::query("SELECT wish FROM wishes WHERE run_id = $1")
        .bind(key(id)?)
        .fetch_all(&store.pool)
        .await?;
    store.or_unknown(id, rows).await?.iter().map(rows::control_request).collect()
}

/// The runs among `ids` that have this request.
pub(crate) async fn runs_with(
    store: &PgStore,
    ids: &[RunId],
    request: ControlRequest,
) -> Result<BTreeSet<RunId>, StoreError> {
    let keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
    let found: Vec<String> =
        sqlx::query_scalar("SELECT run_id::text FROM wishes WHERE run_id = ANY ($1) AND wish = $2")
            .bind(keys)
            .bind(request.as_str())
            .fetch_all(&store.pool)
            .await?;
    found.iter().map(|id| rows::run_id(id)).collect()
}
