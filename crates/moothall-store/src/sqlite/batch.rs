//! Admits a batch of calls within a transaction.

use moothall_core::budget::ReserveRequest;
use moothall_core::{EffectId, RunId};
use sqlx::SqliteConnection;

use super::commit::{find, update, write_events};
use crate::batch::BudgetSession;
use crate::prepared_commit::{PreparedCommit, text};
use crate::rows;
use crate::{BatchAdmission, StoreError};

/// Publishes events, then returns existing results, control requests and the budget decision. The
/// caller holds the write lock and rolls back on error.
pub(crate) async fn begin(
    connection: &mut SqliteConnection,
    id: &RunId,
    prepared: &PreparedCommit,
    effects: &[EffectId],
    wish: &ReserveRequest,
) -> Result<BatchAdmission, StoreError> {
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
    let mut begun = BatchAdmission {
        wishes: wishes.iter().map(rows::wish).collect::<Result<_, _>>()?,
        answers: answers.iter().map(rows::journal_entry).collect::<Result<_, _>>()?,
        room: None,
    };
    let mut purse = BudgetSession::open(found.purse.as_deref());
    if begun.wishes.is_empty() && begun.answers.is_empty() {
        begun.room = Some(purse.reserve(wish)?);
    }
    // Callers that poll for budget must not cause a write while there is none.
    let changed = purse.close(found.spent.as_deref())?;
    if !stored.is_empty() || changed.is_news() {
        update(connection, &found, &stored, prepared, changed).await?;
    }
    Ok(begun)
}
