//! One commit, inside its transaction.

use std::collections::BTreeMap;

use moothall_core::{Outcome, RunEventBody, RunId};
use sqlx::postgres::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Found, Hold, database_error, hold, key};
use crate::prepared::{Changed, Prepared, compare};
use crate::rows::{json, to_sql, unsigned};
use crate::{StoreError, StoredEvent};

/// Writes a commit. Whoever commits to the same run waits at its row, so that numbers have no gaps
/// and nobody sees a number before the smaller ones.
pub(super) async fn write(
    pool: &PgPool,
    id: &RunId,
    prepared: &Prepared,
) -> Result<Vec<StoredEvent>, StoreError> {
    // Dropped before its end, it is rolled back.
    let mut transaction = pool.begin().await.map_err(database_error)?;
    let run = key(id)?;
    let found = hold(&mut transaction, id, Hold::Alone).await?;
    if found.state.is_terminal() {
        check_repetition(&mut transaction, id, &found, prepared).await?;
        return Ok(Vec::new());
    }
    let stored = write_events(&mut transaction, run, &found, prepared).await?;
    let answered = write_results(&mut transaction, id, prepared).await?;
    let changed = Changed::new(found.purse.as_deref(), prepared)?;
    let state = prepared.commit.state.unwrap_or(found.state);
    // The amount alone is worth a write: it changes while a call that nobody answers yet is under
    // way. Whoever repeats a commit says nothing new about it.
    let spends = changed.spent.is_some() && changed.spent != found.spent;
    let settles = changed.purse.is_some() && changed.purse != found.purse;
    if !(answered || !stored.is_empty() || state != found.state || spends || settles) {
        return Ok(stored);
    }
    update(&mut transaction, run, &found, &stored, prepared, changed).await?;
    transaction.commit().await.map_err(database_error)?;
    Ok(stored)
}

/// Writes the row of a run that something happened to.
pub(super) async fn update(
    connection: &mut PgConnection,
    run: Uuid,
    found: &Found,
    stored: &[StoredEvent],
    prepared: &Prepared,
    changed: Changed,
) -> Result<(), StoreError> {
    let state = prepared.commit.state.unwrap_or(found.state);
    let head = stored.last().map_or(Ok(found.head), |event| to_sql(event.seq))?;
    sqlx::query(
        "UPDATE runs SET head = $2, state = $3, outcome = $4, spent = coalesce($5, spent),
                         purse = CASE WHEN $6 THEN NULL ELSE coalesce($7, purse) END,
                         updated_at_ms = $8
         WHERE run_id = $1",
    )
    .bind(run)
    .bind(head)
    .bind(state.as_str())
    .bind(prepared.outcome.as_deref())
    .bind(changed.spent)
    // Nobody asks for the budget of a run that has ended.
    .bind(state.is_terminal())
    .bind(changed.purse)
    .bind(prepared.at_ms)
    .execute(connection)
    .await
    .map_err(database_error)?;
    Ok(())
}

/// Numbers the events whose key is new, in their order, and writes them.
pub(super) async fn write_events(
    connection: &mut PgConnection,
    run: Uuid,
    found: &Found,
    prepared: &Prepared,
) -> Result<Vec<StoredEvent>, StoreError> {
    if prepared.bodies.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&str> = prepared.events().map(|(event, _)| event.key.as_str()).collect();
    let written: Vec<(i64, i64)> = sqlx::query_as(
        "WITH offered AS (
             SELECT DISTINCT ON (key) place, key, body
             FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS offered (key, body, place)
             ORDER BY key, place
         ), fresh AS (
             SELECT place, key, body, $2 + row_number() OVER (ORDER BY place) AS seq
             FROM offered
             WHERE NOT EXISTS (SELECT 1 FROM events WHERE run_id = $1 AND events.key = offered.key)
         ), written AS (
             INSERT INTO events (run_id, seq, key, at_ms, body)
             SELECT $1, seq, key, $3, body FROM fresh
         )
         SELECT place, seq FROM fresh ORDER BY seq",
    )
    .bind(run)
    .bind(found.head)
    .bind(prepared.at_ms)
    .bind(keys)
    .bind(&prepared.bodies)
    .fetch_all(connection)
    .await
    .map_err(database_error)?;
    let mut stored = Vec::with_capacity(written.len());
    for (place, seq) in written {
        let place = usize::try_from(place).unwrap_or_default().wrapping_sub(1);
        let event = prepared.commit.events.get(place).cloned();
        let event = event.ok_or_else(|| StoreError::unreadable("event", "it was not offered"))?;
        stored.push(StoredEvent { seq: unsigned(seq)?, at_ms: prepared.commit.at_ms, event });
    }
    Ok(stored)
}

/// Whether a result was new.
async fn write_results(
    connection: &mut PgConnection,
    id: &RunId,
    prepared: &Prepared,
) -> Result<bool, StoreError> {
    if prepared.results.is_empty() {
        return Ok(false);
    }
    let count = prepared.results.len();
    let (mut ids, mut requests) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut latencies, mut tries) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (effect_id, entry, _) in prepared.results() {
        ids.push(effect_id.as_str());
        requests.push(entry.request_sha256.to_string());
        latencies.push(to_sql(entry.timing.latency_ms)?);
        tries.push(i64::from(entry.timing.tries));
    }
    let done = sqlx::query(
        "INSERT INTO journal (run_id, effect_id, request_sha256, latency_ms, tries, result)
         SELECT $1, effect_id, decode(request, 'hex'), latency_ms, tries, result
         FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[])
              AS offered (effect_id, request, latency_ms, tries, result)
         ON CONFLICT (run_id, effect_id) DO NOTHING",
    )
    .bind(key(id)?)
    .bind(ids)
    .bind(requests)
    .bind(latencies)
    .bind(tries)
    .bind(&prepared.results)
    .execute(&mut *connection)
    .await
    .map_err(database_error)?;
    let new = usize::try_from(done.rows_affected()).unwrap_or(usize::MAX);
    if new < count {
        compare_results(connection, id, prepared).await?;
    }
    Ok(new > 0)
}

/// Whether the journal holds all of these very entries; another one under the same id is an error.
async fn compare_results(
    connection: &mut PgConnection,
    id: &RunId,
    prepared: &Prepared,
) -> Result<bool, StoreError> {
    let ids: Vec<&str> = prepared.results().map(|(id, _, _)| id.as_str()).collect();
    let found: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT effect_id, encode(request_sha256, 'hex'), result FROM journal
         WHERE run_id = $1 AND effect_id = ANY ($2)",
    )
    .bind(key(id)?)
    .bind(ids)
    .fetch_all(connection)
    .await
    .map_err(database_error)?;
    let found: BTreeMap<&str, (&str, &str)> =
        found.iter().map(|(id, request, result)| (id.as_str(), (&**request, &**result))).collect();
    let mut all = true;
    for offered in prepared.results() {
        match found.get(offered.0.as_str()) {
            Some((request, result)) => compare(id, offered, request, result)?,
            None => all = false,
        }
    }
    Ok(all)
}

/// A run that has ended takes what it has already, and nothing else.
async fn check_repetition(
    connection: &mut PgConnection,
    id: &RunId,
    found: &Found,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    let ended = || StoreError::RunEnded { run_id: id.clone(), state: found.state };
    if prepared.commit.state.is_some_and(|state| state != found.state) {
        return Err(ended());
    }
    if let Some(offered) = &prepared.commit.outcome {
        let stored: Option<String> =
            sqlx::query_scalar("SELECT outcome FROM runs WHERE run_id = $1")
                .bind(key(id)?)
                .fetch_one(&mut *connection)
                .await
                .map_err(database_error)?;
        let stored = stored.map(|stored| json::<Outcome>("outcome", &stored)).transpose()?;
        if stored.as_ref() != Some(offered) {
            return Err(ended());
        }
    }
    let keys: Vec<&str> = prepared.events().map(|(event, _)| event.key.as_str()).collect();
    let stored: Vec<(String, String)> =
        sqlx::query_as("SELECT key, body FROM events WHERE run_id = $1 AND key = ANY ($2)")
            .bind(key(id)?)
            .bind(keys)
            .fetch_all(&mut *connection)
            .await
            .map_err(database_error)?;
    let stored: BTreeMap<String, String> = stored.into_iter().collect();
    for (event, _) in prepared.events() {
        let body = stored.get(&event.key);
        let body = body.map(|body| json::<RunEventBody>("event", body)).transpose()?;
        if body.as_ref() != Some(&event.body) {
            return Err(ended());
        }
    }
    if !compare_results(connection, id, prepared).await? {
        return Err(ended());
    }
    Ok(())
}
