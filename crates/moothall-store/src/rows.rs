//! Conversions between rows and values.

use std::error::Error;
use std::str::FromStr;

use moothall_core::access::{RunOwner, TokenId};
use moothall_core::consult::{MoveApproval, ReviewChange, RunOutcomes};
use moothall_core::money::{MicroUsd, SpendTotals};
use moothall_core::receipt::EffectTiming;
use moothall_core::{EffectId, RunEvent, RunId, Sha256Hex, StoredSpec};
use serde::de::DeserializeOwned;

use crate::{
    ControlRequest, Credential, JournalEntry, LoginCode, RunRow, RunState, SessionRow, StoreError,
    StoredEvent, TeamRow, TokenRow,
};

/// A row of either database, with the column types we use.
pub(crate) trait RowReader {
    fn text(&self, column: &str) -> Result<&str, StoreError>;
    fn optional_text(&self, column: &str) -> Result<Option<&str>, StoreError>;
    fn number(&self, column: &str) -> Result<i64, StoreError>;
    fn optional_number(&self, column: &str) -> Result<Option<i64>, StoreError>;
}

/// Implements [`RowReader`] for the row type of one database.
macro_rules! is_a_record {
    ($row:ty) => {
        impl crate::rows::RowReader for $row {
            fn text(&self, column: &str) -> Result<&str, crate::StoreError> {
                Ok(sqlx::Row::try_get(self, column)?)
            }

            fn optional_text(&self, column: &str) -> Result<Option<&str>, crate::StoreError> {
                Ok(sqlx::Row::try_get(self, column)?)
            }

            fn number(&self, column: &str) -> Result<i64, crate::StoreError> {
                Ok(sqlx::Row::try_get(self, column)?)
            }

            fn optional_number(&self, column: &str) -> Result<Option<i64>, crate::StoreError> {
                Ok(sqlx::Row::try_get(self, column)?)
            }
        }
    };
}
pub(crate) use is_a_record;

/// SQL integers are signed.
pub(crate) fn to_sql(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Misfit("a number exceeds 2^63 - 1"))
}

pub(crate) fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|error| StoreError::unreadable("number", error))
}

pub(crate) fn json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::unreadable(what, error))
}

pub(crate) fn digest(text: &str) -> Result<Sha256Hex, StoreError> {
    Sha256Hex::parse(text).ok_or_else(|| StoreError::unreadable("digest", "not a digest"))
}

pub(crate) fn run_id(text: &str) -> Result<RunId, StoreError> {
    text.parse().map_err(|error| StoreError::unreadable("run id", error))
}

/// The token of a run, from the result of a query.
pub(crate) fn token_id(
    run: &RunId,
    found: Option<Option<String>>,
) -> Result<Option<TokenId>, StoreError> {
    let token = found.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
    let parse =
        |text: String| text.parse().map_err(|error| StoreError::unreadable("token id", error));
    token.map(parse).transpose()
}

pub(crate) fn control_request(row: &impl RowReader) -> Result<ControlRequest, StoreError> {
    ControlRequest::parse(row.text("wish")?)
        .ok_or_else(|| StoreError::unreadable("wish", "unknown control request"))
}

/// Reads the column `state`.
pub(crate) fn run_state(row: &impl RowReader) -> Result<RunState, StoreError> {
    row.text("state")?.parse().map_err(|error| StoreError::unreadable("state", error))
}

pub(crate) fn run_row(row: &impl RowReader) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        run_id: run_id(row.text("run_id")?)?,
        owner: owner(row)?,
        cap: cap(row)?,
        spec: StoredSpec::from_columns(row.text("workflow")?, json("input", row.text("input")?)?),
        title: row.text("title")?.to_owned(),
        model: row.text("model")?.to_owned(),
        build: row.text("build")?.to_owned(),
        created_at_ms: unsigned(row.number("created_at_ms")?)?,
        state: run_state(row)?,
        updated_at_ms: unsigned(row.number("updated_at_ms")?)?,
        events: unsigned(row.number("head")?)?,
        outcome: row.optional_text("outcome")?.map(|text| json("outcome", text)).transpose()?,
        spent: spent(row)?,
    })
}

/// Reads the columns `team` and `token_id`.
fn owner(row: &impl RowReader) -> Result<RunOwner, StoreError> {
    let token = row.optional_text("token_id")?;
    Ok(RunOwner {
        team: parsed("team", row.text("team")?)?,
        token: token.map(|text| parsed("token id", text)).transpose()?,
    })
}

/// Reads the column `cap_micro_usd`.
pub(crate) fn cap(row: &impl RowReader) -> Result<Option<MicroUsd>, StoreError> {
    Ok(row.optional_number("cap_micro_usd")?.map(unsigned).transpose()?.map(MicroUsd::new))
}

pub(crate) fn spent(row: &impl RowReader) -> Result<Option<SpendTotals>, StoreError> {
    row.optional_text("spent")?.map(|text| json("amount", text)).transpose()
}

pub(crate) fn team(row: &impl RowReader) -> Result<TeamRow, StoreError> {
    Ok(TeamRow {
        name: parsed("team", row.text("name")?)?,
        created_at_ms: unsigned(row.number("created_at_ms")?)?,
    })
}

pub(crate) fn token(row: &impl RowReader) -> Result<TokenRow, StoreError> {
    Ok(TokenRow {
        id: parsed("token id", row.text("token_id")?)?,
        team: parsed("team", row.text("team")?)?,
        label: row.text("label")?.to_owned(),
        scopes: parsed("scopes", row.text("scopes")?)?,
        limits: json("limits", row.text("limits")?)?,
        created_at_ms: unsigned(row.number("created_at_ms")?)?,
        expires_at_ms: time(row, "expires_at_ms")?,
        last_used_at_ms: time(row, "last_used_at_ms")?,
        revoked_at_ms: time(row, "revoked_at_ms")?,
    })
}

/// The session, and the id of its token.
pub(crate) fn session(row: &impl RowReader) -> Result<(SessionRow, Option<TokenId>), StoreError> {
    let token = row.optional_text("token_id")?;
    let session = SessionRow {
        team: parsed("team", row.text("team")?)?,
        token: None,
        scopes: parsed("scopes", row.text("scopes")?)?,
        expires_at_ms: unsigned(row.number("expires_at_ms")?)?,
        page_word: Credential::from_client(row.text("page_word")?),
    };
    Ok((session, token.map(|text| parsed("token id", text)).transpose()?))
}

pub(crate) fn login_code(row: &impl RowReader) -> Result<LoginCode, StoreError> {
    Ok(LoginCode {
        secret: digest(row.text("secret_sha256")?)?,
        team: parsed("team", row.text("team")?)?,
        scopes: parsed("scopes", row.text("scopes")?)?,
        expires_at_ms: unsigned(row.number("expires_at_ms")?)?,
    })
}

fn time(row: &impl RowReader, name: &str) -> Result<Option<u64>, StoreError> {
    row.optional_number(name)?.map(unsigned).transpose()
}

fn parsed<T>(what: &'static str, text: &str) -> Result<T, StoreError>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    text.parse().map_err(|error| StoreError::unreadable(what, error))
}

pub(crate) fn stored_event(row: &impl RowReader) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        seq: unsigned(row.number("seq")?)?,
        at_ms: unsigned(row.number("at_ms")?)?,
        event: RunEvent {
            key: row.text("key")?.to_owned(),
            body: json("event", row.text("body")?)?,
        },
    })
}

pub(crate) fn approval(row: &impl RowReader) -> Result<MoveApproval, StoreError> {
    Ok(MoveApproval {
        move_id: row.text("move_id")?.to_owned(),
        by: row.text("approved_by")?.to_owned(),
        note: row.text("note")?.to_owned(),
        at_ms: unsigned(row.number("at_ms")?)?,
    })
}

pub(crate) fn change(row: &impl RowReader) -> Result<ReviewChange, StoreError> {
    json("change", row.text("change")?)
}

/// Reads the column `later_outcomes`.
pub(crate) fn later_outcomes(row: &impl RowReader) -> Result<Option<RunOutcomes>, StoreError> {
    let text = row.optional_text("later_outcomes")?;
    text.map(|text| json("recorded outcomes", text)).transpose()
}

pub(crate) fn id(row: &impl RowReader) -> Result<RunId, StoreError> {
    run_id(row.text("run_id")?)
}

pub(crate) fn journal_entry(row: &impl RowReader) -> Result<(EffectId, JournalEntry), StoreError> {
    let (id, timing) = effect_timing(row)?;
    let entry = JournalEntry {
        request_sha256: digest(row.text("request_sha256")?)?,
        result: json("result", row.text("result")?)?,
        timing,
    };
    Ok((id, entry))
}

pub(crate) fn effect_timing(row: &impl RowReader) -> Result<(EffectId, EffectTiming), StoreError> {
    let id = row.text("effect_id")?;
    let timing = EffectTiming {
        latency_ms: unsigned(row.number("latency_ms")?)?,
        tries: u32::try_from(row.number("tries")?)
            .map_err(|error| StoreError::unreadable("number", error))?,
    };
    Ok((id.parse().map_err(|error| StoreError::unreadable("effect id", error))?, timing))
}
