//! The beginning of calls, inside its transaction.

use moothall_core::purse::Reserve;
use moothall_core::{EffectId, RunId};
use sqlx::postgres::PgPool;

use super::commit::{update, write_events};
use super::{Hold, database_error, hold, key};
use crate::prepared::{Changed, Prepared};
use crate::rows::{self, Record as _};
use crate::wave::reserve;
use crate::{Begun, StoreError};

/// How the run stands, and whether somebody who follows it has something to read.
pub(super) async fn begin(
    pool: &PgPool,
    id: &RunId,
    prepared: &Prepared,
    effects: &[EffectId],
    wish: &Reserve,
) -> Result<(Begun, bool), StoreError> {
    let mut transaction = pool.begin().await.map_err(database_error)?;
    let run = key(id)?;
    let found = hold(&mut transaction, id, Hold::Alone).await?;
    if found.state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state: found.state });
    }
    let stored = write_events(&mut transaction, run, &found, prepared).await?;
    // Asked once the row is held: whoever held it before may have brought an answer.
    let ids: Vec<&str> = effects.iter().map(EffectId::as_str).collect();
    let rows = sqlx::query(
        "SELECT effect_id, encode(request_sha256, 'hex') AS request_sha256, latency_ms, tries,
                result, NULL AS wish
         FROM journal WHERE run_id = $1 AND effect_id = ANY ($2)
         UNION ALL
         SELECT NULL, NULL, NULL, NULL, NULL, wish FROM wishes WHERE run_id = $1",
    )
    .bind(run)
    .bind(ids)
    .fetch_all(&mut *transaction)
    .await
    .map_err(database_error)?;
    let mut begun = Begun::default();
    for row in &rows {
        if row.optional_text("wish")?.is_some() {
            begun.wishes.insert(rows::wish(row)?);
        } else {
            let (effect_id, entry) = rows::journal_entry(row)?;
            begun.answers.insert(effect_id, entry);
        }
    }
    let mut changed = Changed { spent: None, purse: None };
    if rows.is_empty() {
        let (room, kept) = reserve(found.purse.as_deref(), wish)?;
        begun.room = Some(room);
        changed.purse = Some(kept.account);
    }
    // Whoever asks again and again for room writes nothing while there is none.
    if !stored.is_empty()
        || changed.purse.as_ref().is_some_and(|it| found.purse.as_ref() != Some(it))
    {
        update(&mut transaction, run, &found, &stored, prepared, changed).await?;
        transaction.commit().await.map_err(database_error)?;
    }
    Ok((begun, !stored.is_empty()))
}
