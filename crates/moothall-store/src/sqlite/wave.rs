//! The beginning of calls, inside its transaction.

use moothall_core::purse::Reserve;
use moothall_core::{EffectId, RunId};
use sqlx::SqliteConnection;

use super::commit::{find, update, write_events};
use super::database_error;
use crate::prepared::{Changed, Prepared, text};
use crate::rows;
use crate::wave::reserve;
use crate::{Begun, StoreError};

/// How the run stands. The caller holds the write lock, and rolls back on an error.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    id: &RunId,
    prepared: &Prepared,
    effects: &[EffectId],
    wish: &Reserve,
) -> Result<Begun, StoreError> {
    let found = find(connection, id).await?;
    if found.state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state: found.state });
    }
    let stored = write_events(connection, &found, prepared).await?;
    let wishes = sqlx::query("SELECT wish FROM wishes WHERE run = ?")
        .bind(found.run)
        .fetch_all(&mut *connection)
        .await
        .map_err(database_error)?;
    let answers = sqlx::query(
        "SELECT effect_id, request_sha256, latency_ms, tries, result FROM journal
         WHERE run = ? AND effect_id IN (SELECT value FROM json_each(?))",
    )
    .bind(found.run)
    .bind(text("the ids", &effects)?)
    .fetch_all(&mut *connection)
    .await
    .map_err(database_error)?;
    let mut begun = Begun {
        wishes: wishes.iter().map(rows::wish).collect::<Result<_, _>>()?,
        answers: answers.iter().map(rows::journal_entry).collect::<Result<_, _>>()?,
        room: None,
    };
    let mut changed = Changed { spent: None, purse: None };
    if begun.wishes.is_empty() && begun.answers.is_empty() {
        let (room, kept) = reserve(found.purse.as_deref(), wish)?;
        begun.room = Some(room);
        changed.purse = Some(kept.account);
    }
    // Whoever asks again and again for room writes nothing while there is none.
    if !stored.is_empty()
        || changed.purse.as_ref().is_some_and(|it| found.purse.as_ref() != Some(it))
    {
        update(connection, &found, &stored, prepared, changed).await?;
    }
    Ok(begun)
}
