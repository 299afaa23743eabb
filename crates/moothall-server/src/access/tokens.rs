//! `/api/tokens`: the tokens of a team, for its administrators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use moothall_core::ErrorCode;
use moothall_core::access::{Caller, Limits, Owner, Scope, Scopes, TokenId};
use moothall_store::{
    Credential, MAX_LABEL_BYTES, NewToken, Teams, TokenRow, now_ms, random_token_id,
};

use crate::asked::{Body, Named};
use crate::times::rfc3339;
use crate::wire::{MadeToken, MakeToken, TokenList, TokenState, TokenSummary};
use crate::{App, Problem, Who};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The longest life of a token that is made over the network.
const MOST_DAYS: u32 = 366;

pub(crate) async fn list(State(app): State<App>, who: Who) -> Result<Json<TokenList>, Problem> {
    let teams = Teams::Only(who.owner()?.team);
    let (rows, now_ms) = (app.access.accounts.tokens(teams).await?, now_ms());
    Ok(Json(TokenList { tokens: rows.iter().map(|row| summary(row, now_ms)).collect() }))
}

/// Makes a token of the caller's team that may do at most what the caller may. It is in this answer
/// and never again.
pub(crate) async fn make(
    State(app): State<App>,
    who: Who,
    Body(request): Body<MakeToken>,
) -> Result<Response, Problem> {
    let MakeToken { label, scopes, days, runs_at_once, micro_usd_a_day, requests_a_minute } =
        request;
    if label.len() > MAX_LABEL_BYTES || label.chars().any(char::is_control) {
        let words =
            format!("a label has at most {MAX_LABEL_BYTES} bytes and no control characters");
        return Err(Problem::bad_request(words));
    }
    if !(1..=MOST_DAYS).contains(&days) {
        return Err(Problem::bad_request(format!("a token lives 1 to {MOST_DAYS} days")));
    }
    let Some((first, others)) = scopes.split_first() else {
        return Err(Problem::bad_request("a token has at least one scope"));
    };
    let random = |error| Problem::internal(&super::AccessError::Randomness(error));
    let secret = Credential::token().map_err(random)?;
    let id = random_token_id().map_err(random)?;
    let created_at_ms = now_ms();
    let maker = who.member()?.clone();
    let wanted = Limits {
        runs_at_once: runs_at_once.or(Some(Limits::USUAL_RUNS)),
        usd_a_day: micro_usd_a_day,
        requests_a_minute: requests_a_minute.or(Some(Limits::USUAL_REQUESTS)),
    };
    let ends_at_ms = created_at_ms.saturating_add(u64::from(days) * DAY_MS);
    let maker_ends_at_ms = expiry(&app, &maker.owner).await?;
    let token = NewToken {
        id: id.clone(),
        team: maker.owner.team,
        label,
        secret: secret.sha256(),
        scopes: others.iter().fold(Scopes::only(*first), |all, one| all.and(*one)),
        limits: wanted.within(maker.limits),
        created_at_ms,
        expires_at_ms: Some(maker_ends_at_ms.map_or(ends_at_ms, |end| ends_at_ms.min(end))),
    };
    app.access.accounts.create_token(token).await?;
    let made = MadeToken { id, token: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// When the caller's own token expires; `None` if it never does, or the caller has none.
async fn expiry(app: &App, owner: &Owner) -> Result<Option<u64>, Problem> {
    let Some(id) = &owner.token else { return Ok(None) };
    let rows = app.access.accounts.tokens(Teams::Only(owner.team.clone())).await?;
    Ok(rows.into_iter().find(|row| row.id == *id).and_then(|row| row.expires_at_ms))
}

/// Takes a token of the caller's team back. One of another team is not there.
pub(crate) async fn revoke(
    State(app): State<App>,
    who: Who,
    Named(token): Named<String>,
) -> Result<Json<TokenSummary>, Problem> {
    let not_there = || {
        Problem::new(StatusCode::NOT_FOUND, ErrorCode::TokenNotFound, "there is no such token")
            .with_hint("`GET /api/tokens` lists them")
    };
    let id: TokenId = token.parse().map_err(|_| not_there())?;
    let find = async || {
        let teams = Teams::Only(who.owner()?.team);
        let rows = app.access.accounts.tokens(teams).await?;
        rows.into_iter().find(|row| row.id == id).ok_or_else(not_there)
    };
    let row = find().await?;
    let owner = Owner { team: row.team, token: None };
    who.may_with(Scope::Admin, &owner)?;
    app.access.accounts.revoke_token(&id, now_ms()).await?;
    Ok(Json(summary(&find().await?, now_ms())))
}

fn summary(row: &TokenRow, now_ms: u64) -> TokenSummary {
    TokenSummary {
        id: row.id.clone(),
        label: row.label.clone(),
        scopes: row.scopes.iter().collect(),
        state: match row.caller(now_ms) {
            Caller::Expired => TokenState::Expired,
            Caller::Revoked => TokenState::Revoked,
            Caller::Nobody | Caller::Unknown | Caller::Known(_) => TokenState::Active,
        },
        created_at: rfc3339(row.created_at_ms),
        expires_at: row.expires_at_ms.map(rfc3339),
        last_used_at: row.last_used_at_ms.map(rfc3339),
        runs_at_once: row.limits.runs_at_once,
        micro_usd_a_day: row.limits.usd_a_day,
        requests_a_minute: row.limits.requests_a_minute,
    }
}
