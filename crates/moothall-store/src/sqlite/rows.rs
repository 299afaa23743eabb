//! Between rows and values.

use std::error::Error;
use std::str::FromStr;

use moothall_core::access::{Owner, TokenId};
use moothall_core::consult::{Approval, Change};
use moothall_core::money::{MicroUsd, Spent};
use moothall_core::receipt::Timing;
use moothall_core::{EffectId, RunEvent, RunId, Sha256Hex};
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::database_error;
use crate::{
    JournalEntry, LoginCode, RunRow, RunState, SessionRow, StoreError, StoredEvent, TeamRow,
    TokenRow, Wish,
};

/// SQLite's integers have a sign.
pub(super) fn to_sql(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Misfit("a number is beyond 2^63"))
}

pub(super) fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|error| StoreError::unreadable("number", error))
}

pub(super) fn json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::unreadable(what, error))
}

pub(super) fn digest(text: &str) -> Result<Sha256Hex, StoreError> {
    Sha256Hex::parse(text).ok_or_else(|| StoreError::unreadable("digest", "not a digest"))
}

pub(super) fn run_id(text: &str) -> Result<RunId, StoreError> {
    text.parse().map_err(|error| StoreError::unreadable("run id", error))
}

pub(super) fn wish(row: &SqliteRow) -> Result<Wish, StoreError> {
    Wish::parse(column(row, "wish")?).ok_or_else(|| StoreError::unreadable("wish", "not a wish"))
}

/// From the column `state`.
pub(super) fn run_state(row: &SqliteRow) -> Result<RunState, StoreError> {
    column::<&str>(row, "state")?.parse().map_err(|error| StoreError::unreadable("state", error))
}

pub(super) fn run_row(row: &SqliteRow) -> Result<RunRow, StoreError> {
    let outcome: Option<&str> = column(row, "outcome")?;
    Ok(RunRow {
        run_id: run_id(column(row, "run_id")?)?,
        owner: owner(row)?,
        cap: cap(row)?,
        workflow: column(row, "workflow")?,
        title: column(row, "title")?,
        input: json("input", column(row, "input")?)?,
        model: column(row, "model")?,
        build: column(row, "build")?,
        created_at_ms: unsigned(column(row, "created_at_ms")?)?,
        state: run_state(row)?,
        updated_at_ms: unsigned(column(row, "updated_at_ms")?)?,
        events: unsigned(column(row, "head")?)?,
        outcome: outcome.map(|text| json("outcome", text)).transpose()?,
        spent: spent(row)?,
    })
}

/// From the columns `team` and `token_id`.
fn owner(row: &SqliteRow) -> Result<Owner, StoreError> {
    let token: Option<&str> = column(row, "token_id")?;
    Ok(Owner {
        team: parsed("team", column(row, "team")?)?,
        token: token.map(|text| parsed("token id", text)).transpose()?,
    })
}

/// From the column `cap_micro_usd`.
pub(super) fn cap(row: &SqliteRow) -> Result<Option<MicroUsd>, StoreError> {
    let cap: Option<i64> = column(row, "cap_micro_usd")?;
    Ok(cap.map(unsigned).transpose()?.map(MicroUsd::new))
}

pub(super) fn spent(row: &SqliteRow) -> Result<Option<Spent>, StoreError> {
    let spent: Option<&str> = column(row, "spent")?;
    spent.map(|text| json("amount", text)).transpose()
}

pub(super) fn team(row: &SqliteRow) -> Result<TeamRow, StoreError> {
    Ok(TeamRow {
        name: parsed("team", column(row, "name")?)?,
        created_at_ms: unsigned(column(row, "created_at_ms")?)?,
    })
}

pub(super) fn token(row: &SqliteRow) -> Result<TokenRow, StoreError> {
    Ok(TokenRow {
        id: parsed("token id", column(row, "token_id")?)?,
        team: parsed("team", column(row, "team")?)?,
        label: column(row, "label")?,
        scopes: parsed("scopes", column(row, "scopes")?)?,
        limits: json("limits", column(row, "limits")?)?,
        created_at_ms: unsigned(column(row, "created_at_ms")?)?,
        expires_at_ms: time(row, "expires_at_ms")?,
        last_used_at_ms: time(row, "last_used_at_ms")?,
        revoked_at_ms: time(row, "revoked_at_ms")?,
    })
}

/// The session itself and the id of its token.
pub(super) fn session(row: &SqliteRow) -> Result<(SessionRow, Option<TokenId>), StoreError> {
    let token: Option<&str> = column(row, "token_id")?;
    let session = SessionRow {
        team: parsed("team", column(row, "team")?)?,
        token: None,
        scopes: parsed("scopes", column(row, "scopes")?)?,
        expires_at_ms: unsigned(column(row, "expires_at_ms")?)?,
    };
    Ok((session, token.map(|text| parsed("token id", text)).transpose()?))
}

pub(super) fn login_code(row: &SqliteRow) -> Result<LoginCode, StoreError> {
    Ok(LoginCode {
        secret: digest(column(row, "secret_sha256")?)?,
        team: parsed("team", column(row, "team")?)?,
        scopes: parsed("scopes", column(row, "scopes")?)?,
        expires_at_ms: unsigned(column(row, "expires_at_ms")?)?,
    })
}

fn time(row: &SqliteRow, name: &str) -> Result<Option<u64>, StoreError> {
    let time: Option<i64> = column(row, name)?;
    time.map(unsigned).transpose()
}

fn parsed<T>(what: &'static str, text: &str) -> Result<T, StoreError>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    text.parse().map_err(|error| StoreError::unreadable(what, error))
}

pub(super) fn stored_event(row: &SqliteRow) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        seq: unsigned(column(row, "seq")?)?,
        at_ms: unsigned(column(row, "at_ms")?)?,
        event: RunEvent { key: column(row, "key")?, body: json("event", column(row, "body")?)? },
    })
}

pub(super) fn approval(row: &SqliteRow) -> Result<Approval, StoreError> {
    Ok(Approval {
        move_id: column(row, "move_id")?,
        by: column(row, "approved_by")?,
        note: column(row, "note")?,
        at_ms: unsigned(column(row, "at_ms")?)?,
    })
}

pub(super) fn change(row: &SqliteRow) -> Result<Change, StoreError> {
    json("change", column(row, "change")?)
}

pub(super) fn journal_entry(row: &SqliteRow) -> Result<(EffectId, JournalEntry), StoreError> {
    let id: &str = column(row, "effect_id")?;
    let entry = JournalEntry {
        request_sha256: digest(column(row, "request_sha256")?)?,
        result: json("result", column(row, "result")?)?,
        timing: Timing {
            latency_ms: unsigned(column(row, "latency_ms")?)?,
            tries: column(row, "tries")?,
        },
    };
    Ok((id.parse().map_err(|error| StoreError::unreadable("effect id", error))?, entry))
}

fn column<'r, T>(row: &'r SqliteRow, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    row.try_get(name).map_err(database_error)
}
