//! How a run begins.

use moothall_core::access::{Excess, InUse, Limits, TokenId, admit as within_limits};
use moothall_core::{MicroUsd, RunId};
use sqlx::{SqliteConnection, SqlitePool};

use super::accounts::know_team;
use super::database_error;
use crate::prepared::text;
use crate::rows::{self, digest, json, run_id, to_sql};
use crate::{Admission, NewRun, Once, RunState, StoreError, Terms, rules};

/// Makes a run whose team is there and whose id is new.
pub(super) async fn make(
    connection: &mut SqliteConnection,
    run: &NewRun,
) -> Result<(), StoreError> {
    let input = text("the input", &run.spec)?;
    let at_ms = to_sql(run.created_at_ms)?;
    let team = &run.owner.team;
    know_team(connection, team).await?;
    let done = sqlx::query(
        "INSERT INTO runs (run_id, workflow, title, input, model, build, created_at_ms, state,
                           updated_at_ms, head, team, token_id, cap_micro_usd)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING",
    )
    .bind(run.run_id.as_str())
    .bind(run.spec.workflow())
    .bind(run.title.as_str())
    .bind(input)
    .bind(run.model.as_str())
    .bind(run.build.as_str())
    .bind(at_ms)
    .bind(RunState::Running.as_str())
    .bind(at_ms)
    .bind(team.as_str())
    .bind(run.owner.token.as_ref().map(TokenId::as_str))
    .bind(run.cap.map(|cap| to_sql(cap.micros())).transpose()?)
    .execute(connection)
    .await
    .map_err(database_error)?;
    if done.rows_affected() == 0 {
        return Err(StoreError::RunExists(run.run_id.clone()));
    }
    Ok(())
}

/// Makes a run on terms.
pub(super) async fn admit(
    writer: &SqlitePool,
    run: &NewRun,
    terms: &Terms,
) -> Result<Admission, StoreError> {
    rules::check_key(terms)?;
    // The write lock first: nobody else starts a run between looking and writing.
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await.map_err(database_error)?;
    if let Some(once) = &terms.once
        && let Some(before) = asked_before(&mut transaction, run, once).await?
    {
        return Ok(before);
    }
    if let Some(token) = &run.owner.token {
        let limits = limits_of(&mut transaction, token).await?;
        let day = Day { token, began_at_ms: terms.day_began_at_ms, but: &run.run_id };
        if let Err(excess) = within_limits(limits, day.in_use(&mut transaction).await?, run.cap) {
            return Ok(Admission::Refused(excess));
        }
    }
    make(&mut transaction, run).await?;
    if let Some(once) = &terms.once {
        sqlx::query(
            "INSERT INTO requests (team, key, request_sha256, run)
             SELECT team, ?, ?, run FROM runs WHERE run_id = ?",
        )
        .bind(once.key.as_str())
        .bind(once.request_sha256.to_string())
        .bind(run.run_id.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(database_error)?;
    }
    transaction.commit().await.map_err(database_error)?;
    Ok(Admission::Made)
}

async fn asked_before(
    connection: &mut SqliteConnection,
    run: &NewRun,
    once: &Once,
) -> Result<Option<Admission>, StoreError> {
    let before: Option<(String, String)> = sqlx::query_as(
        "SELECT request_sha256, run_id FROM requests JOIN runs USING (run)
         WHERE requests.team = ? AND key = ?",
    )
    .bind(run.owner.team.as_str())
    .bind(once.key.as_str())
    .fetch_optional(connection)
    .await
    .map_err(database_error)?;
    let Some((request, made)) = before else { return Ok(None) };
    Ok(Some(if digest(&request)? == once.request_sha256 {
        Admission::MadeBefore(run_id(&made)?)
    } else {
        Admission::OtherRequest
    }))
}

/// Gives a run another cap, if the rest of its token's day leaves room for it.
pub(super) async fn change_cap(
    writer: &SqlitePool,
    id: &RunId,
    cap: Option<MicroUsd>,
    day_began_at_ms: u64,
) -> Result<Result<(), Excess>, StoreError> {
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await.map_err(database_error)?;
    let row = sqlx::query("SELECT * FROM runs WHERE run_id = ?")
        .bind(id.as_str())
        .fetch_optional(&mut *transaction)
        .await
        .map_err(database_error)?
        .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    let run = rows::run_row(&row)?;
    if run.state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state: run.state });
    }
    if let Some(token) = &run.owner.token {
        // It is one of the runs at once already.
        let limits = Limits { runs_at_once: None, ..limits_of(&mut transaction, token).await? };
        let day = Day { token, began_at_ms: day_began_at_ms, but: id };
        let in_use = day.in_use(&mut transaction).await?;
        if let Err(excess) = within_limits(limits, in_use, cap) {
            return Ok(Err(excess));
        }
    }
    sqlx::query("UPDATE runs SET cap_micro_usd = ? WHERE run_id = ?")
        .bind(cap.map(|cap| to_sql(cap.micros())).transpose()?)
        .bind(id.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(database_error)?;
    transaction.commit().await.map_err(database_error)?;
    Ok(Ok(()))
}

async fn limits_of(
    connection: &mut SqliteConnection,
    token: &TokenId,
) -> Result<Limits, StoreError> {
    let limits: Option<String> = sqlx::query_scalar("SELECT limits FROM tokens WHERE token_id = ?")
        .bind(token.as_str())
        .fetch_optional(connection)
        .await
        .map_err(database_error)?;
    json("limits", &limits.ok_or_else(|| StoreError::UnknownToken(token.clone()))?)
}

/// The runs of a token that count in a day: those that began in it, and those that have not ended.
struct Day<'a> {
    token: &'a TokenId,
    began_at_ms: u64,
    /// This one does not count.
    but: &'a RunId,
}

impl Day<'_> {
    async fn in_use(&self, connection: &mut SqliteConnection) -> Result<InUse, StoreError> {
        let found = sqlx::query(
            "SELECT state, spent, cap_micro_usd FROM runs
             WHERE token_id = ? AND run_id <> ?
               AND (created_at_ms >= ? OR state IN ('running', 'paused'))",
        )
        .bind(self.token.as_str())
        .bind(self.but.as_str())
        .bind(to_sql(self.began_at_ms)?)
        .fetch_all(connection)
        .await
        .map_err(database_error)?;
        rules::in_use(&found)
    }
}
