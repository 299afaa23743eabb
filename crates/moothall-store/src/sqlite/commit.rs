//! One commit, inside its transaction.

use moothall_core::{EffectId, EffectResult, Outcome, RunEvent, RunEventBody, RunId, Sha256Hex};
use serde::Serialize;
use sqlx::{Row as _, SqliteConnection};

use super::database_error;
use super::rows::{digest, json, run_state, to_sql, unsigned};
use crate::{
    Commit, JournalEntry, JournalMismatch, MAX_TEXT_BYTES, RunState, StoreError, StoredEvent,
};

/// A commit whose texts are written, so that the one writer is not held up by that.
#[derive(Debug)]
pub(super) struct Prepared {
    commit: Commit,
    at_ms: i64,
    /// In the order of `commit.events`.
    bodies: Vec<String>,
    /// In the order of `commit.results`.
    results: Vec<String>,
    outcome: Option<String>,
    spent: Option<String>,
}

impl Prepared {
    pub(super) fn new(commit: Commit) -> Result<Self, StoreError> {
        check_shape(&commit)?;
        let bodies = commit.events.iter().map(|event| text("an event", &event.body));
        let results = commit.results.iter().map(|(_, entry)| text("a result", &entry.result));
        let outcome = commit.outcome.as_ref().map(|outcome| text("an outcome", outcome));
        let spent = commit.spent.as_ref().map(|spent| text("an amount", spent));
        Ok(Self {
            at_ms: to_sql(commit.at_ms)?,
            bodies: bodies.collect::<Result<_, _>>()?,
            results: results.collect::<Result<_, _>>()?,
            outcome: outcome.transpose()?,
            spent: spent.transpose()?,
            commit,
        })
    }

    fn events(&self) -> impl Iterator<Item = (&RunEvent, &String)> {
        self.commit.events.iter().zip(&self.bodies)
    }

    fn results(&self) -> impl Iterator<Item = (&EffectId, &JournalEntry, &String)> {
        self.commit.results.iter().zip(&self.results).map(|((id, entry), text)| (id, entry, text))
    }
}

/// The text of a value as it is stored.
pub(super) fn text<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    let text = serde_json::to_string(value)
        .map_err(|_| StoreError::Misfit("a value cannot be written as JSON"))?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(StoreError::TooLarge { what, bytes: text.len(), limit: MAX_TEXT_BYTES });
    }
    Ok(text)
}

fn check_shape(commit: &Commit) -> Result<(), StoreError> {
    let ends = commit.state.is_some_and(RunState::is_terminal);
    let terminal = commit.events.iter().position(|event| event.body.is_terminal());
    match terminal {
        Some(at) if at + 1 < commit.events.len() => {
            Err(StoreError::Misfit("an event follows a terminal event"))
        }
        Some(_) if !ends => Err(StoreError::Misfit("a terminal event without a terminal state")),
        _ if commit.outcome.is_some() && !ends => {
            Err(StoreError::Misfit("an outcome without a terminal state"))
        }
        _ => Ok(()),
    }
}

/// The run's row as the commit finds it.
struct Found {
    run: i64,
    head: i64,
    state: RunState,
    spent: Option<String>,
}

/// Writes a commit. The caller holds the write lock, so that numbers have no gaps, and rolls back
/// on an error.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    id: &RunId,
    prepared: Prepared,
) -> Result<Vec<StoredEvent>, StoreError> {
    let row = sqlx::query("SELECT run, head, state, spent FROM runs WHERE run_id = ?")
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(database_error)?
        .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    let found = Found {
        run: row.try_get("run").map_err(database_error)?,
        head: row.try_get("head").map_err(database_error)?,
        state: run_state(&row)?,
        spent: row.try_get("spent").map_err(database_error)?,
    };
    if found.state.is_terminal() {
        check_repetition(connection, id, &found, &prepared).await?;
        return Ok(Vec::new());
    }
    let stored = write_events(connection, &found, &prepared).await?;
    let mut answered = false;
    for result in prepared.results() {
        answered |= write_result(connection, id, &found, result).await?;
    }
    let state = prepared.commit.state.unwrap_or(found.state);
    // The amount alone is worth a write: it changes while a call that nobody answers yet is under
    // way. Whoever repeats a commit says nothing new about it.
    let spends = prepared.spent.is_some() && prepared.spent != found.spent;
    if answered || !stored.is_empty() || state != found.state || spends {
        let head = stored.last().map_or(Ok(found.head), |event| to_sql(event.seq))?;
        sqlx::query(
            "UPDATE runs SET head = ?, state = ?, outcome = ?, spent = coalesce(?, spent),
                             updated_at_ms = ?
             WHERE run = ?",
        )
        .bind(head)
        .bind(state.as_str())
        .bind(prepared.outcome)
        .bind(prepared.spent)
        .bind(prepared.at_ms)
        .bind(found.run)
        .execute(connection)
        .await
        .map_err(database_error)?;
    }
    Ok(stored)
}

async fn write_events(
    connection: &mut SqliteConnection,
    found: &Found,
    prepared: &Prepared,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut stored = Vec::new();
    let mut seq = found.head + 1;
    for (event, body) in prepared.events() {
        let done = sqlx::query(
            "INSERT INTO events (run, seq, key, at_ms, body) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (run, key) DO NOTHING",
        )
        .bind(found.run)
        .bind(seq)
        .bind(&event.key)
        .bind(prepared.at_ms)
        .bind(body)
        .execute(&mut *connection)
        .await
        .map_err(database_error)?;
        if done.rows_affected() > 0 {
            let at_ms = prepared.commit.at_ms;
            stored.push(StoredEvent { seq: unsigned(seq)?, at_ms, event: event.clone() });
            seq += 1;
        }
    }
    Ok(stored)
}

/// Whether the result was new.
async fn write_result(
    connection: &mut SqliteConnection,
    id: &RunId,
    found: &Found,
    (effect_id, entry, result): (&EffectId, &JournalEntry, &String),
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO journal (run, effect_id, request_sha256, latency_ms, tries, result)
         VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, effect_id) DO NOTHING",
    )
    .bind(found.run)
    .bind(effect_id.as_str())
    .bind(entry.request_sha256.to_string())
    .bind(to_sql(entry.timing.latency_ms)?)
    .bind(i64::from(entry.timing.tries))
    .bind(result)
    .execute(&mut *connection)
    .await
    .map_err(database_error)?;
    if done.rows_affected() > 0 {
        return Ok(true);
    }
    compare_result(connection, id, found, (effect_id, entry, result)).await?;
    Ok(false)
}

/// Whether the journal holds this very entry already; another one under the same id is an error.
async fn compare_result(
    connection: &mut SqliteConnection,
    run_id: &RunId,
    found: &Found,
    (effect_id, entry, text): (&EffectId, &JournalEntry, &String),
) -> Result<bool, StoreError> {
    let row: Option<(String, String)> = sqlx::query_as(
        "SELECT request_sha256, result FROM journal WHERE run = ? AND effect_id = ?",
    )
    .bind(found.run)
    .bind(effect_id.as_str())
    .fetch_optional(connection)
    .await
    .map_err(database_error)?;
    let Some((request, result)) = row else { return Ok(false) };
    let (stored, offered): (Sha256Hex, _) = (digest(&request)?, entry.request_sha256);
    let mismatch = if stored != offered {
        JournalMismatch::Request { stored, offered }
    } else if result != *text && json::<EffectResult>("result", &result)? != entry.result {
        JournalMismatch::Result
    } else {
        return Ok(true);
    };
    let (run_id, effect_id) = (run_id.clone(), effect_id.clone());
    Err(StoreError::JournalConflict { run_id, effect_id, mismatch })
}

/// A run that has ended takes what it has already, and nothing else.
async fn check_repetition(
    connection: &mut SqliteConnection,
    id: &RunId,
    found: &Found,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    let ended = || StoreError::RunEnded { run_id: id.clone(), state: found.state };
    if prepared.commit.state.is_some_and(|state| state != found.state) {
        return Err(ended());
    }
    if let Some(offered) = &prepared.commit.outcome {
        let stored: Option<String> = sqlx::query_scalar("SELECT outcome FROM runs WHERE run = ?")
            .bind(found.run)
            .fetch_one(&mut *connection)
            .await
            .map_err(database_error)?;
        let stored = stored.map(|stored| json::<Outcome>("outcome", &stored)).transpose()?;
        if stored.as_ref() != Some(offered) {
            return Err(ended());
        }
    }
    for (event, _) in prepared.events() {
        let stored: Option<String> =
            sqlx::query_scalar("SELECT body FROM events WHERE run = ? AND key = ?")
                .bind(found.run)
                .bind(&event.key)
                .fetch_optional(&mut *connection)
                .await
                .map_err(database_error)?;
        let stored = stored.map(|stored| json::<RunEventBody>("event", &stored)).transpose()?;
        if stored.as_ref() != Some(&event.body) {
            return Err(ended());
        }
    }
    for offered in prepared.results() {
        if !compare_result(connection, id, found, offered).await? {
            return Err(ended());
        }
    }
    Ok(())
}
