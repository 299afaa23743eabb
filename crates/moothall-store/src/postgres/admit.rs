//! SQL for the admission of runs.

use moothall_core::access::{CredentialLimits, CredentialUsage, TeamName, TokenId};
use moothall_core::{MicroUsd, RunId};
use sqlx::postgres::PgConnection;

use super::accounts::ensure_team;
use super::commit::{self, WriteRequest};
use super::{RowLock, key, lock_row};
use crate::admission::{AdmissionConnection, TokenDay};
use crate::prepared_commit::{PreparedCommit, text};
use crate::rows::{json, to_sql, token_id};
use crate::{IdempotencyKey, NewRun, RunState, StoreError, validation};

impl AdmissionConnection for PgConnection {
    async fn find_request(
        &mut self,
        team: &TeamName,
        idempotency_key: &IdempotencyKey,
    ) -> Result<Option<(String, String)>, StoreError> {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1 || '/' || $2, 0))")
            .bind(team.as_str())
            .bind(idempotency_key.key.as_str())
            .execute(&mut *self)
            .await?;
        let before = sqlx::query_as(
            "SELECT encode(request_sha256, 'hex'), run_id::text FROM requests
             WHERE team = $1 AND key = $2",
        );
        Ok(before
            .bind(team.as_str())
            .bind(idempotency_key.key.as_str())
            .fetch_optional(self)
            .await?)
    }

    async fn record_request(
        &mut self,
        run: &NewRun,
        idempotency_key: &IdempotencyKey,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO requests (team, key, request_sha256, run_id)
             VALUES ($1, $2, decode($3, 'hex'), $4)",
        )
        .bind(run.owner.team.as_str())
        .bind(idempotency_key.key.as_str())
        .bind(idempotency_key.request_sha256.to_string())
        .bind(key(&run.run_id)?)
        .execute(self)
        .await?;
        Ok(())
    }

    async fn insert_run(&mut self, run: &NewRun) -> Result<(), StoreError> {
        ensure_team(self, &run.owner.team).await?;
        let done = sqlx::query(
            "INSERT INTO runs (run_id, workflow, title, input, model, build, created_at_ms, state,
                               updated_at_ms, head, team, token_id, cap_micro_usd)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $7, 0, $9, $10, $11)
             ON CONFLICT (run_id) DO NOTHING",
        )
        .bind(key(&run.run_id)?)
        .bind(run.spec.workflow())
        .bind(run.title.as_str())
        .bind(text("the input", &run.spec)?)
        .bind(run.model.as_str())
        .bind(run.build.as_str())
        .bind(to_sql(run.created_at_ms)?)
        .bind(RunState::Running.as_str())
        .bind(run.owner.team.as_str())
        .bind(run.owner.token.as_ref().map(TokenId::as_str))
        .bind(run.cap.map(|cap| to_sql(cap.micros())).transpose()?)
        .execute(self)
        .await?;
        validation::check_created(run, done.rows_affected())
    }

    async fn insert_results(
        &mut self,
        id: &RunId,
        prepared: PreparedCommit,
    ) -> Result<(), StoreError> {
        let request = WriteRequest { prepared, calls: None };
        commit::write_results(self, id, &[&request]).await.map(drop)
    }

    async fn token_of(&mut self, id: &RunId) -> Result<Option<TokenId>, StoreError> {
        let token: Option<Option<String>> =
            sqlx::query_scalar("SELECT token_id FROM runs WHERE run_id = $1")
                .bind(key(id)?)
                .fetch_optional(self)
                .await?;
        token_id(id, token)
    }

    async fn lock_state(&mut self, id: &RunId) -> Result<RunState, StoreError> {
        Ok(lock_row(self, id, RowLock::Exclusive).await?.state)
    }

    async fn set_cap(&mut self, id: &RunId, cap: Option<MicroUsd>) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET cap_micro_usd = $1 WHERE run_id = $2")
            .bind(cap.map(|cap| to_sql(cap.micros())).transpose()?)
            .bind(key(id)?)
            .execute(self)
            .await?;
        Ok(())
    }

    async fn limits_of(&mut self, token: &TokenId) -> Result<CredentialLimits, StoreError> {
        let limits: Option<String> =
            sqlx::query_scalar("SELECT limits FROM tokens WHERE token_id = $1 FOR NO KEY UPDATE")
                .bind(token.as_str())
                .fetch_optional(self)
                .await?;
        json("limits", &limits.ok_or_else(|| StoreError::UnknownToken(token.clone()))?)
    }

    async fn in_use(&mut self, day: &TokenDay<'_>) -> Result<CredentialUsage, StoreError> {
        let found = sqlx::query(
            "SELECT state, spent, cap_micro_usd FROM runs
             WHERE token_id = $1 AND run_id <> $2
               AND (created_at_ms >= $3 OR state IN ('running', 'paused'))",
        )
        .bind(day.token.as_str())
        .bind(key(day.exclude)?)
        .bind(to_sql(day.began_at_ms)?)
        .fetch_all(self)
        .await?;
        validation::in_use(&found)
    }
}
