//! Between rows and values.

use moothall_core::consult::{Approval, Change};
use moothall_core::receipt::Timing;
use moothall_core::{EffectId, RunEvent, RunId, Sha256Hex};
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::database_error;
use crate::{JournalEntry, RunRow, RunState, StoreError, StoredEvent, Wish};

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
    let spent: Option<&str> = column(row, "spent")?;
    Ok(RunRow {
        run_id: run_id(column(row, "run_id")?)?,
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
        spent: spent.map(|text| json("amount", text)).transpose()?,
    })
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
