//! What others want of a run.

use std::collections::BTreeSet;

use moothall_core::RunId;
use uuid::Uuid;

use super::{Found, Hold, PgStore, hold, key};
use crate::{StoreError, Wish, rows};

/// Leaves a wish, once.
pub(super) async fn add(store: &PgStore, id: &RunId, wish: Wish) -> Result<(), StoreError> {
    let mut transaction = store.begin_writing().await?;
    let Found { state, .. } = hold(&mut transaction, id, Hold::Shared).await?;
    if state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state });
    }
    sqlx::query(
        "INSERT INTO wishes (run_id, wish) VALUES ($1, $2) ON CONFLICT (run_id, wish) DO NOTHING",
    )
    .bind(key(id)?)
    .bind(wish.as_str())
    .execute(&mut *transaction)
    .await?;
    Ok(transaction.commit().await?)
}

pub(super) async fn take_back(store: &PgStore, id: &RunId, wish: Wish) -> Result<(), StoreError> {
    let done = sqlx::query("DELETE FROM wishes WHERE run_id = $1 AND wish = $2")
        .bind(key(id)?)
        .bind(wish.as_str())
        .execute(&store.pool)
        .await?;
    store.ensure_known(id, done.rows_affected()).await
}

pub(super) async fn all(store: &PgStore, id: &RunId) -> Result<BTreeSet<Wish>, StoreError> {
    let rows = sqlx::query("SELECT wish FROM wishes WHERE run_id = $1")
        .bind(key(id)?)
        .fetch_all(&store.pool)
        .await?;
    store.or_unknown(id, rows).await?.iter().map(rows::wish).collect()
}

/// Those of these runs that have the wish.
pub(super) async fn of(
    store: &PgStore,
    ids: &[RunId],
    wish: Wish,
) -> Result<BTreeSet<RunId>, StoreError> {
    let keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
    let found: Vec<String> =
        sqlx::query_scalar("SELECT run_id::text FROM wishes WHERE run_id = ANY ($1) AND wish = $2")
            .bind(keys)
            .bind(wish.as_str())
            .fetch_all(&store.pool)
            .await?;
    found.iter().map(|id| rows::run_id(id)).collect()
}
