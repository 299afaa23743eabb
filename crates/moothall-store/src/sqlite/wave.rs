//! The beginning of calls, inside its transaction.

use moothall_core::purse::Reserve;
use moothall_core::{EffectId, RunId};
use sqlx::SqliteConnection;

use super::commit::{find, update, write_events};
use crate::prepared::{Prepared, text};
use crate::rows;
use crate::wave::Purse;
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
        .await?;
    let answers = sqlx::query(
        "SELECT effect_id, request_sha256, latency_ms, tries, result FROM journal
         WHERE run = ? AND effect_id IN (SELECT value FROM json_each(?))",
    )
    .bind(found.run)
    .bind(text("the ids", &effects)?)
    .fetch_all(&mut *connection)
    .await?;
    let mut begun = Begun {
        wishes: wishes.iter().map(rows::wish).collect::<Result<_, _>>()?,
        answers: answers.iter().map(rows::journal_entry).collect::<Result<_, _>>()?,
        room: None,
    };
    let mut purse = Purse::open(found.purse.as_deref());
    if begun.wishes.is_empty() && begun.answers.is_empty() {
        begun.room = Some(purse.reserve(wish)?);
    }
    // Whoever asks again and again for room writes nothing while there is none.
    let changed = purse.close(found.spent.as_deref())?;
    if !stored.is_empty() || changed.is_news() {
        update(connection, &found, &stored, prepared, changed).await?;
    }
    Ok(begun)
}
