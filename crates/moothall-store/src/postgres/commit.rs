//! Writes to a run within a transaction.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::budget::ReserveRequest;
use moothall_core::{EffectId, Outcome, RunEventBody, RunId};
use sqlx::postgres::{PgConnection, PgPool};
use uuid::Uuid;

use super::{PgRunHead, RowLock, key, lock_row};
use crate::batch::{BudgetSession, BudgetUpdate};
use crate::prepared_commit::{PreparedCommit, compare};
use crate::rows::{self, RowReader as _, json, to_sql, unsigned};
use crate::{BatchAdmission, ControlRequest, JournalEntry, RunState, StoreError, StoredEvent};

#[derive(Debug)]
pub(crate) struct WriteRequest {
    pub(crate) prepared: PreparedCommit,
    /// The calls to start, if any.
    pub(crate) calls: Option<BatchCalls>,
}

impl WriteRequest {
    /// Whether it can share a transaction with other requests. A request that changes the run's
    /// state cannot.
    pub(crate) fn may_share(&self) -> bool {
        self.prepared.commit.state.is_none() && self.prepared.outcome.is_none()
    }

    pub(crate) fn bytes(&self) -> usize {
        let PreparedCommit { bodies, results, .. } = &self.prepared;
        bodies.iter().chain(results).map(String::len).sum()
    }
}

#[derive(Debug)]
pub(crate) struct BatchCalls {
    pub(crate) effects: Vec<EffectId>,
    pub(crate) reserve: ReserveRequest,
}

#[derive(Debug, Default)]
pub(crate) struct WriteReply {
    /// The new events.
    pub(crate) stored: Vec<StoredEvent>,
    /// Results, control requests and budget for a caller that starts calls.
    pub(crate) admission: BatchAdmission,
}

/// Writes all requests or none. Writers of the same run are serialized by its row lock, so event
/// numbers have no gaps and become visible in order.
pub(crate) async fn write(
    pool: &PgPool,
    id: &RunId,
    requests: &[&WriteRequest],
) -> Result<Vec<WriteReply>, StoreError> {
    // Dropping it without a commit rolls it back.
    let mut transaction = pool.begin().await?;
    let run = key(id)?;
    let found = lock_row(&mut transaction, id, RowLock::Exclusive).await?;
    if found.state.is_terminal() {
        return match requests {
            [WriteRequest { prepared, calls: None }] => {
                check_repetition(&mut transaction, id, &found, prepared).await?;
                Ok(vec![WriteReply::default()])
            }
            _ => Err(StoreError::RunEnded { run_id: id.clone(), state: found.state }),
        };
    }
    let mut replies = write_events(&mut transaction, run, &found, requests).await?;
    let has_new_results = write_results(&mut transaction, id, requests).await?;
    // Read after taking the row lock, because the previous holder may have journaled a result.
    let snapshot = read_snapshot(&mut transaction, run, requests).await?;
    let mut budget = BudgetSession::open(found.budget.as_deref());
    for (request, reply) in requests.iter().zip(&mut replies) {
        budget.apply(&request.prepared)?;
        if let Some(BatchCalls { effects, reserve }) = &request.calls {
            reply.admission = snapshot.admission_for(effects);
            if reply.admission.control_requests.is_empty() && reply.admission.entries.is_empty() {
                reply.admission.reservation = Some(budget.reserve(reserve)?);
            }
        }
    }
    let changed = budget.close(found.spent.as_deref())?;
    let latest = requests.iter().rev().find_map(|request| request.prepared.commit.state);
    let state = latest.unwrap_or(found.state);
    // Callers that poll for budget must not cause a write while there is none.
    if has_new_results
        || replies.iter().any(|reply| !reply.stored.is_empty())
        || state != found.state
        || changed.has_changes()
    {
        update(&mut transaction, run, (&found, state), &replies, requests, changed).await?;
        transaction.commit().await?;
    }
    Ok(replies)
}

/// Updates the row of a run after a write.
async fn update(
    connection: &mut PgConnection,
    run: Uuid,
    (found, state): (&PgRunHead, RunState),
    replies: &[WriteReply],
    requests: &[&WriteRequest],
    changed: BudgetUpdate,
) -> Result<(), StoreError> {
    let latest = || requests.iter().rev().map(|request| &request.prepared);
    let last = replies.iter().filter_map(|reply| reply.stored.last()).map(|event| event.seq).max();
    let head = last.map_or(Ok(found.head), to_sql)?;
    sqlx::query(
        "UPDATE runs SET head = $2, state = $3, outcome = $4, spent = coalesce($5, spent),
                         purse = CASE WHEN $6 THEN NULL ELSE coalesce($7, purse) END,
                         updated_at_ms = $8
         WHERE run_id = $1",
    )
    .bind(run)
    .bind(head)
    .bind(state.as_str())
    .bind(latest().find_map(|prepared| prepared.outcome.as_deref()))
    .bind(changed.spent)
    // The budget of an ended run is no longer needed.
    .bind(state.is_terminal())
    .bind(changed.account)
    .bind(latest().map(|prepared| prepared.at_ms).max())
    .execute(connection)
    .await?;
    Ok(())
}

/// Numbers and writes the events whose key is new, in order. Returns a reply per request with its
/// new events.
async fn write_events(
    connection: &mut PgConnection,
    run: Uuid,
    found: &PgRunHead,
    requests: &[&WriteRequest],
) -> Result<Vec<WriteReply>, StoreError> {
    let mut replies: Vec<WriteReply> = requests.iter().map(|_| WriteReply::default()).collect();
    let (mut keys, mut bodies) = (Vec::new(), Vec::new());
    let (mut times, mut offered) = (Vec::new(), Vec::new());
    for (number, WriteRequest { prepared, .. }) in requests.iter().enumerate() {
        for (event, body) in prepared.events() {
            keys.push(event.key.as_str());
            bodies.push(body.as_str());
            times.push(prepared.at_ms);
            offered.push((number, prepared.commit.at_ms, event));
        }
    }
    if offered.is_empty() {
        return Ok(replies);
    }
    let written: Vec<(i64, i64)> = sqlx::query_as(
        "WITH offered AS (
             SELECT DISTINCT ON (key) place, key, body, at_ms
             FROM unnest($3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
                  AS offered (key, body, at_ms, place)
             ORDER BY key, place
         ), fresh AS (
             SELECT place, key, body, at_ms, $2 + row_number() OVER (ORDER BY place) AS seq
             FROM offered
             WHERE NOT EXISTS (SELECT 1 FROM events WHERE run_id = $1 AND events.key = offered.key)
         ), written AS (
             INSERT INTO events (run_id, seq, key, at_ms, body)
             SELECT $1, seq, key, at_ms, body FROM fresh
         )
         SELECT place, seq FROM fresh ORDER BY seq",
    )
    .bind(run)
    .bind(found.head)
    .bind(keys)
    .bind(bodies)
    .bind(times)
    .fetch_all(connection)
    .await?;
    for (place, seq) in written {
        let place = usize::try_from(place).unwrap_or_default().wrapping_sub(1);
        let not_offered =
            || StoreError::unreadable("event", "the database returned an unknown event");
        let &(number, at_ms, event) = offered.get(place).ok_or_else(not_offered)?;
        let reply = replies.get_mut(number).ok_or_else(not_offered)?;
        reply.stored.push(StoredEvent { seq: unsigned(seq)?, at_ms, event: event.clone() });
    }
    Ok(replies)
}

/// Returns whether any result was new.
pub(crate) async fn write_results(
    connection: &mut PgConnection,
    id: &RunId,
    requests: &[&WriteRequest],
) -> Result<bool, StoreError> {
    let results: Vec<_> = requests.iter().flat_map(|request| request.prepared.results()).collect();
    if results.is_empty() {
        return Ok(false);
    }
    let count = results.len();
    let (mut ids, mut requested) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut latencies, mut tries) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut texts = Vec::with_capacity(count);
    for (effect_id, entry, text) in &results {
        ids.push(effect_id.as_str());
        requested.push(entry.request_sha256.to_string());
        latencies.push(to_sql(entry.timing.latency_ms)?);
        tries.push(i64::from(entry.timing.tries));
        texts.push(text.as_str());
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
    .bind(requested)
    .bind(latencies)
    .bind(tries)
    .bind(texts)
    .execute(&mut *connection)
    .await?;
    let new = usize::try_from(done.rows_affected()).unwrap_or(usize::MAX);
    if new < count {
        compare_results(connection, id, &results).await?;
    }
    Ok(new > 0)
}

/// What callers that start calls need to know.
#[derive(Debug, Default)]
struct BatchSnapshot {
    control_requests: BTreeSet<ControlRequest>,
    entries: BTreeMap<EffectId, JournalEntry>,
}

impl BatchSnapshot {
    /// The part that concerns these effects.
    fn admission_for(&self, effects: &[EffectId]) -> BatchAdmission {
        let entry = |id: &EffectId| Some((id.clone(), self.entries.get(id)?.clone()));
        let entries = effects.iter().filter_map(entry).collect();
        let control_requests = self.control_requests.clone();
        BatchAdmission { control_requests, entries, reservation: None }
    }
}

async fn read_snapshot(
    connection: &mut PgConnection,
    run: Uuid,
    requests: &[&WriteRequest],
) -> Result<BatchSnapshot, StoreError> {
    let mut snapshot = BatchSnapshot::default();
    if requests.iter().all(|request| request.calls.is_none()) {
        return Ok(snapshot);
    }
    let calls = requests.iter().filter_map(|request| request.calls.as_ref());
    let ids: Vec<&str> = calls.flat_map(|calls| &calls.effects).map(EffectId::as_str).collect();
    let rows = sqlx::query(
        "SELECT effect_id, encode(request_sha256, 'hex') AS request_sha256, latency_ms, tries,
                result, NULL AS wish
         FROM journal WHERE run_id = $1 AND effect_id = ANY ($2)
         UNION ALL
         SELECT NULL, NULL, NULL, NULL, NULL, wish FROM wishes WHERE run_id = $1",
    )
    .bind(run)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    for row in &rows {
        if row.optional_text("wish")?.is_some() {
            snapshot.control_requests.insert(rows::control_request(row)?);
        } else {
            snapshot.entries.extend([rows::journal_entry(row)?]);
        }
    }
    Ok(snapshot)
}

/// Whether the journal has exactly these entries. A different entry under the same id is an error.
async fn compare_results(
    connection: &mut PgConnection,
    id: &RunId,
    results: &[(&EffectId, &JournalEntry, &String)],
) -> Result<bool, StoreError> {
    let ids: Vec<&str> = results.iter().map(|(id, _, _)| id.as_str()).collect();
    let found: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT effect_id, encode(request_sha256, 'hex'), result FROM journal
         WHERE run_id = $1 AND effect_id = ANY ($2)",
    )
    .bind(key(id)?)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    let found: BTreeMap<&str, (&str, &str)> =
        found.iter().map(|(id, request, result)| (id.as_str(), (&**request, &**result))).collect();
    let mut all = true;
    for offered in results.iter().copied() {
        match found.get(offered.0.as_str()) {
            Some((request, result)) => compare(id, offered, request, result)?,
            None => all = false,
        }
    }
    Ok(all)
}

/// Checks that a commit to an ended run only repeats what is stored.
async fn check_repetition(
    connection: &mut PgConnection,
    id: &RunId,
    found: &PgRunHead,
    prepared: &PreparedCommit,
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
                .await?;
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
            .await?;
    let stored: BTreeMap<String, String> = stored.into_iter().collect();
    for (event, _) in prepared.events() {
        let body = stored.get(&event.key);
        let body = body.map(|body| json::<RunEventBody>("event", body)).transpose()?;
        if body.as_ref() != Some(&event.body) {
            return Err(ended());
        }
    }
    let results: Vec<_> = prepared.results().collect();
    if !compare_results(connection, id, &results).await? {
        return Err(ended());
    }
    Ok(())
}
