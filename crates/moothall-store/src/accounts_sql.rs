//! SQL for teams, tokens, sessions and login codes. Both databases accept the same statements, but
//! sqlx has different types for each, so the code is a macro that each store invokes once.

/// Implements [`crate::AccountStore`] for a store that has `reads`, `writes` and `begin_writing`.
macro_rules! accounts {
    ($Store:ident, $Connection:ident) => {
        use moothall_core::Sha256Hex;
        use moothall_core::access::{TeamName, TokenId};

        use crate::prepared_commit::text;
        use crate::rows::{self, to_sql};
        use crate::{
            AccountStore, LoginCode, NewSession, NewToken, SessionRow, StoreError, StoreFuture, TeamRow,
            TeamFilter, TokenRow, validation,
        };

        impl AccountStore for $Store {
            fn create_team(&self, name: &TeamName, at_ms: u64) -> StoreFuture<'_, ()> {
                let name = name.clone();
                Box::pin(async move {
                    let done = sqlx::query(
                        "INSERT INTO teams (name, created_at_ms) VALUES ($1, $2)
                         ON CONFLICT (name) DO NOTHING",
                    )
                    .bind(name.as_str())
                    .bind(to_sql(at_ms)?)
                    .execute(self.writes())
                    .await?;
                    if done.rows_affected() == 0 { Err(StoreError::TeamExists(name)) } else { Ok(()) }
                })
            }

            fn teams(&self) -> StoreFuture<'_, Vec<TeamRow>> {
                Box::pin(async move {
                    let found = sqlx::query("SELECT * FROM teams ORDER BY name")
                        .fetch_all(self.reads())
                        .await?;
                    found.iter().map(rows::team).collect()
                })
            }

            fn create_token(&self, token: NewToken) -> StoreFuture<'_, ()> {
                Box::pin(async move {
                    validation::check_label(&token)?;
                    let limits = text("limits", &token.limits)?;
                    let mut transaction = self.begin_writing().await?;
                    ensure_team(&mut transaction, &token.team).await?;
                    let done = sqlx::query(
                        "INSERT INTO tokens (token_id, team, label, secret_sha256, scopes, limits,
                                             created_at_ms, expires_at_ms)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
                    )
                    .bind(token.id.as_str())
                    .bind(token.team.as_str())
                    .bind(token.label)
                    .bind(token.secret.to_string())
                    .bind(token.scopes.to_string())
                    .bind(limits)
                    .bind(to_sql(token.created_at_ms)?)
                    .bind(token.expires_at_ms.map(to_sql).transpose()?)
                    .execute(&mut *transaction)
                    .await?;
                    if done.rows_affected() == 0 {
                        return Err(StoreError::TokenExists(token.id));
                    }
                    Ok(transaction.commit().await?)
                })
            }

            fn tokens(&self, teams: TeamFilter) -> StoreFuture<'_, Vec<TokenRow>> {
                Box::pin(async move {
                    let found = sqlx::query(
                        "SELECT * FROM tokens WHERE CAST($1 AS text) IS NULL OR team = $1
                         ORDER BY created_at_ms, token_id",
                    )
                    .bind(teams.only())
                    .fetch_all(self.reads())
                    .await?;
                    found.iter().map(rows::token).collect()
                })
            }

            fn token(&self, secret: &Sha256Hex) -> StoreFuture<'_, Option<TokenRow>> {
                let secret = secret.to_string();
                Box::pin(async move {
                    let found = sqlx::query("SELECT * FROM tokens WHERE secret_sha256 = $1")
                        .bind(secret)
                        .fetch_optional(self.reads())
                        .await?;
                    found.as_ref().map(rows::token).transpose()
                })
            }

            fn record_use(&self, id: &TokenId, at_ms: u64) -> StoreFuture<'_, ()> {
                let id = id.clone();
                Box::pin(async move {
                    // Another process's clock may be behind.
                    sqlx::query(
                        "UPDATE tokens SET last_used_at_ms = CASE WHEN last_used_at_ms > $1
                           THEN last_used_at_ms ELSE $1 END
                         WHERE token_id = $2",
                    )
                    .bind(to_sql(at_ms)?)
                    .bind(id.as_str())
                    .execute(self.writes())
                    .await?;
                    Ok(())
                })
            }

            fn revoke_token(&self, id: &TokenId, at_ms: u64) -> StoreFuture<'_, ()> {
                let id = id.clone();
                Box::pin(async move {
                    let mut transaction = self.begin_writing().await?;
                    let done = sqlx::query(
                        "UPDATE tokens SET revoked_at_ms = coalesce(revoked_at_ms, $1) WHERE token_id = $2",
                    )
                    .bind(to_sql(at_ms)?)
                    .bind(id.as_str())
                    .execute(&mut *transaction)
                    .await?;
                    if done.rows_affected() == 0 {
                        return Err(StoreError::UnknownToken(id));
                    }
                    sqlx::query("DELETE FROM sessions WHERE token_id = $1")
                        .bind(id.as_str())
                        .execute(&mut *transaction)
                        .await?;
                    Ok(transaction.commit().await?)
                })
            }

            fn create_session(&self, session: NewSession) -> StoreFuture<'_, ()> {
                Box::pin(async move {
                    let at_ms = to_sql(session.created_at_ms)?;
                    let mut transaction = self.begin_writing().await?;
                    ensure_team(&mut transaction, &session.team).await?;
                    if let Some(token) = &session.token {
                        sqlx::query("SELECT 1 FROM tokens WHERE token_id = $1")
                            .bind(token.as_str())
                            .fetch_optional(&mut *transaction)
                            .await?
                            .ok_or_else(|| StoreError::UnknownToken(token.clone()))?;
                    }
                    sqlx::query("DELETE FROM sessions WHERE expires_at_ms <= $1")
                        .bind(at_ms)
                        .execute(&mut *transaction)
                        .await?;
                    sqlx::query(
                        "INSERT INTO sessions (secret_sha256, team, token_id, scopes, created_at_ms,
                                               expires_at_ms, page_word)
                         VALUES ($1, $2, $3, $4, $5, $6, $7)",
                    )
                    .bind(session.secret.to_string())
                    .bind(session.team.as_str())
                    .bind(session.token.as_ref().map(TokenId::as_str))
                    .bind(session.scopes.to_string())
                    .bind(at_ms)
                    .bind(to_sql(session.expires_at_ms)?)
                    .bind(session.page_word.reveal())
                    .execute(&mut *transaction)
                    .await?;
                    Ok(transaction.commit().await?)
                })
            }

            fn session(&self, secret: &Sha256Hex) -> StoreFuture<'_, Option<SessionRow>> {
                let secret = secret.to_string();
                Box::pin(async move {
                    let found = sqlx::query("SELECT * FROM sessions WHERE secret_sha256 = $1")
                        .bind(secret)
                        .fetch_optional(self.reads())
                        .await?;
                    let Some(row) = found else { return Ok(None) };
                    let (session, id) = rows::session(&row)?;
                    let Some(id) = id else { return Ok(Some(session)) };
                    let row = sqlx::query("SELECT * FROM tokens WHERE token_id = $1")
                        .bind(id.as_str())
                        .fetch_one(self.reads())
                        .await?;
                    Ok(Some(SessionRow { token: Some(rows::token(&row)?), ..session }))
                })
            }

            fn end_session(&self, secret: &Sha256Hex) -> StoreFuture<'_, ()> {
                let secret = secret.to_string();
                Box::pin(async move {
                    sqlx::query("DELETE FROM sessions WHERE secret_sha256 = $1")
                        .bind(secret)
                        .execute(self.writes())
                        .await?;
                    Ok(())
                })
            }

            fn create_login_code(&self, code: LoginCode, at_ms: u64) -> StoreFuture<'_, ()> {
                Box::pin(async move {
                    let mut transaction = self.begin_writing().await?;
                    ensure_team(&mut transaction, &code.team).await?;
                    sqlx::query("DELETE FROM login_codes WHERE expires_at_ms <= $1")
                        .bind(to_sql(at_ms)?)
                        .execute(&mut *transaction)
                        .await?;
                    sqlx::query(
                        "INSERT INTO login_codes (secret_sha256, team, scopes, expires_at_ms)
                         VALUES ($1, $2, $3, $4)",
                    )
                    .bind(code.secret.to_string())
                    .bind(code.team.as_str())
                    .bind(code.scopes.to_string())
                    .bind(to_sql(code.expires_at_ms)?)
                    .execute(&mut *transaction)
                    .await?;
                    Ok(transaction.commit().await?)
                })
            }

            fn take_login_code(
                &self,
                secret: &Sha256Hex,
                at_ms: u64,
            ) -> StoreFuture<'_, Option<LoginCode>> {
                let secret = secret.to_string();
                Box::pin(async move {
                    // A single statement, so only one of several concurrent callers gets the row.
                    let taken = sqlx::query("DELETE FROM login_codes WHERE secret_sha256 = $1 RETURNING *")
                        .bind(secret)
                        .fetch_optional(self.writes())
                        .await?;
                    let code = taken.as_ref().map(rows::login_code).transpose()?;
                    Ok(code.filter(|code| code.expires_at_ms > at_ms))
                })
            }
        }

        /// Fails if the team does not exist.
        pub(crate) async fn ensure_team(
            connection: &mut $Connection,
            team: &TeamName,
        ) -> Result<(), StoreError> {
            sqlx::query("SELECT 1 FROM teams WHERE name = $1")
                .bind(team.as_str())
                .fetch_optional(connection)
                .await?
                .ok_or_else(|| StoreError::UnknownTeam(team.clone()))?;
            Ok(())
        }
    };
}

pub(crate) use accounts;
