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
    reserve: &ReserveRequest,
) -> Result<BatchAdmission, StoreError> {
    let found = find(connection, id).await?;
    if found.state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state: found.state });
    }
    let stored = write_events(connection, &found, prepared).await?;
    let control_requests = sqlx::query("SELECT wish FROM wishes WHERE run = ?")
        .bind(found.run)
        .fetch_all(&mut *connection)
        .await?;
    let entries = sqlx::query(
        "SELECT effect_id, request_sha256, latency_ms, tries, result FROM journal
         WHERE run = ? AND effect_id IN (SELECT value FROM json_each(?))",
    )
    .bind(found.run)
    .bind(text("the ids", &effects)?)
    .fetch_all(&mut *connection)
    .await?;
    let mut admission = BatchAdmission {
        control_requests: control_requests
            .iter()
            .map(rows::control_request)
            .collect::<Result<_, _>>()?,
        entries: entries.iter().map(rows::journal_entry).collect::<Result<_, _>>()?,
        reservation: None,
    };
    let mut budget = BudgetSession::open(found.budget.as_deref());
    if admission.control_requests.is_empty() && admission.entries.is_empty() {
        admission.reservation = Some(budget.reserve(reserve)?);
    }
    // Callers that poll for budget must not cause a write while there is none.
    let changed = budget.close(found.spent.as_deref())?;
    if !stored.is_empty() || changed.has_changes() {
        update(connection, &found, &stored, prepared, changed).await?;
    }
    Ok(admission)
}
