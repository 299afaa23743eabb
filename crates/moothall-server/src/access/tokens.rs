//! `/api/tokens`: token management for the administrators of a team.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use moothall_core::ErrorCode;
use moothall_core::access::{
    AccessCaller, AccessScope, CredentialLimits, RunOwner, ScopeSet, TokenId,
};
use moothall_store::{
    Credential, MAX_LABEL_BYTES, NewToken, TeamFilter, TokenRow, now_ms, random_token_id,
};

use crate::dto::{CreateTokenRequest, CreateTokenResponse, TokenList, TokenState, TokenSummary};
use crate::extract::{JsonBody, PathParams};
use crate::times::rfc3339;
use crate::{ApiProblem, AppState, CallerIdentity};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Maximum lifetime of a token created over HTTP.
const MAX_DAYS: u32 = 366;

pub(crate) async fn list(
    State(app): State<AppState>,
    caller: CallerIdentity,
) -> Result<Json<TokenList>, ApiProblem> {
    let teams = TeamFilter::Only(caller.owner()?.team);
    let (rows, now_ms) = (app.access.accounts.tokens(teams).await?, now_ms());
    Ok(Json(TokenList { tokens: rows.iter().map(|row| summary(row, now_ms)).collect() }))
}

/// Creates a token in the caller's team with at most the caller's permissions, limits and lifetime.
/// The secret is returned only in this response.
pub(crate) async fn make(
    State(app): State<AppState>,
    caller: CallerIdentity,
    JsonBody(request): JsonBody<CreateTokenRequest>,
) -> Result<Response, ApiProblem> {
    let CreateTokenRequest {
        label,
        scopes,
        days,
        runs_at_once,
        micro_usd_a_day,
        requests_a_minute,
    } = request;
    if label.len() > MAX_LABEL_BYTES || label.chars().any(char::is_control) {
        let message =
            format!("`label` must have at most {MAX_LABEL_BYTES} bytes and no control characters");
        return Err(ApiProblem::bad_request(message));
    }
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(ApiProblem::bad_request(format!("`days` must be between 1 and {MAX_DAYS}")));
    }
    let Some((first, others)) = scopes.split_first() else {
        return Err(ApiProblem::bad_request("`scopes` must not be empty"));
    };
    let random = |error| ApiProblem::internal(&super::AccessError::Randomness(error));
    let secret = Credential::token().map_err(random)?;
    let id = random_token_id().map_err(random)?;
    let created_at_ms = now_ms();
    let maker = caller.member()?.clone();
    let wanted = CredentialLimits {
        runs_at_once: runs_at_once.or(Some(CredentialLimits::DEFAULT_RUNS)),
        usd_a_day: micro_usd_a_day,
        requests_a_minute: requests_a_minute.or(Some(CredentialLimits::DEFAULT_REQUESTS)),
    };
    let ends_at_ms = created_at_ms.saturating_add(u64::from(days) * DAY_MS);
    let maker_ends_at_ms = expiry(&app, &maker.owner).await?;
    let token = NewToken {
        id: id.clone(),
        team: maker.owner.team,
        label,
        secret: secret.sha256(),
        scopes: others.iter().fold(ScopeSet::only(*first), |all, one| all.and(*one)),
        limits: wanted.capped_by(maker.limits),
        created_at_ms,
        expires_at_ms: Some(maker_ends_at_ms.map_or(ends_at_ms, |end| ends_at_ms.min(end))),
    };
    app.access.accounts.create_token(token).await?;
    let made = CreateTokenResponse { id, token: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Returns when the caller's own token expires; `None` if it does not expire or the caller has no
/// token.
async fn expiry(app: &AppState, owner: &RunOwner) -> Result<Option<u64>, ApiProblem> {
    let Some(id) = &owner.token else { return Ok(None) };
    let rows = app.access.accounts.tokens(TeamFilter::Only(owner.team.clone())).await?;
    Ok(rows.into_iter().find(|row| row.id == *id).and_then(|row| row.expires_at_ms))
}

/// Revokes a token of the caller's team. Tokens of other teams are reported as not found.
pub(crate) async fn revoke(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(token): PathParams<String>,
) -> Result<Json<TokenSummary>, ApiProblem> {
    let not_there = || {
        ApiProblem::new(StatusCode::NOT_FOUND, ErrorCode::TokenNotFound, "token not found")
            .with_hint("list the tokens with `GET /api/tokens`")
    };
    let id: TokenId = token.parse().map_err(|_| not_there())?;
    let find = async || {
        let teams = TeamFilter::Only(caller.owner()?.team);
        let rows = app.access.accounts.tokens(teams).await?;
        rows.into_iter().find(|row| row.id == id).ok_or_else(not_there)
    };
    let row = find().await?;
    let owner = RunOwner { team: row.team, token: None };
    caller.may_with(AccessScope::Admin, &owner)?;
    app.access.accounts.revoke_token(&id, now_ms()).await?;
    Ok(Json(summary(&find().await?, now_ms())))
}

fn summary(row: &TokenRow, now_ms: u64) -> TokenSummary {
    TokenSummary {
        id: row.id.clone(),
        label: row.label.clone(),
        scopes: row.scopes.iter().collect(),
        state: match row.caller(now_ms) {
            AccessCaller::Expired => TokenState::Expired,
            AccessCaller::Revoked => TokenState::Revoked,
            AccessCaller::Nobody | AccessCaller::Unknown | AccessCaller::Known(_) => {
                TokenState::Active
            }
        },
        created_at: rfc3339(row.created_at_ms),
        expires_at: row.expires_at_ms.map(rfc3339),
        last_used_at: row.last_used_at_ms.map(rfc3339),
        runs_at_once: row.limits.runs_at_once,
        micro_usd_a_day: row.limits.usd_a_day,
        requests_a_minute: row.limits.requests_a_minute,
    }
}
