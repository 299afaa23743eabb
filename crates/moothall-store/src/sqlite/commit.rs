//! Writes a commit within a transaction.

use moothall_core::{EffectId, Outcome, RunEvent, RunEventBody, RunId};
use sqlx::{QueryBuilder, Row as _, Sqlite, SqliteConnection};

use crate::batch::{BudgetSession, BudgetUpdate};
use crate::prepared_commit::{PreparedCommit, compare};
use crate::rows::{json, run_state, to_sql, unsigned};
use crate::{JournalEntry, RunState, StoreError, StoredEvent};

/// Rows per statement. SQLite allows 32,766 parameters.
const MAX_ROWS: usize = 500;

/// The run's row before the commit.
pub(crate) struct SqliteRunHead {
    pub(crate) run: i64,
    head: i64,
    pub(crate) state: RunState,
    pub(crate) spent: Option<String>,
    pub(crate) budget: Option<String>,
}

pub(crate) async fn find(
    connection: &mut SqliteConnection,
    id: &RunId,
) -> Result<SqliteRunHead, StoreError> {
    let row = sqlx::query("SELECT run, head, state, spent, purse FROM runs WHERE run_id = ?")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?
        .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    Ok(SqliteRunHead {
        run: row.try_get("run")?,
        head: row.try_get("head")?,
        state: run_state(&row)?,
        spent: row.try_get("spent")?,
        budget: row.try_get("purse")?,
    })
}

/// Writes a commit. The caller holds the write lock, so that event numbers have no gaps, and rolls
/// back on error.
pub(crate) async fn write(
    connection: &mut SqliteConnection,
    id: &RunId,
    prepared: &PreparedCommit,
) -> Result<Vec<StoredEvent>, StoreError> {
    let found = find(connection, id).await?;
    if found.state.is_terminal() {
        check_repetition(connection, id, &found, prepared).await?;
        return Ok(Vec::new());
    }
    let stored = write_events(connection, &found, prepared).await?;
    let has_new_results = write_results(connection, id, &found, prepared).await?;
    let mut budget = BudgetSession::open(found.budget.as_deref());
    budget.apply(prepared)?;
    let changed = budget.close(found.spent.as_deref())?;
    let state = prepared.commit.state.unwrap_or(found.state);
    if has_new_results || !stored.is_empty() || state != found.state || changed.has_changes() {
        update(connection, &found, &stored, prepared, changed).await?;
    }
    Ok(stored)
}

/// Updates the row of a run after a write.
pub(crate) async fn update(
    connection: &mut SqliteConnection,
    found: &SqliteRunHead,
    stored: &[StoredEvent],
    prepared: &PreparedCommit,
    changed: BudgetUpdate,
) -> Result<(), StoreError> {
    let state = prepared.commit.state.unwrap_or(found.state);
    let head = stored.last().map_or(Ok(found.head), |event| to_sql(event.seq))?;
    sqlx::query(
        "UPDATE runs SET head = ?, state = ?, outcome = ?, spent = coalesce(?, spent),
                         purse = CASE WHEN ? THEN NULL ELSE coalesce(?, purse) END,
                         updated_at_ms = ?
         WHERE run = ?",
    )
    .bind(head)
    .bind(state.as_str())
    .bind(prepared.outcome.as_deref())
    .bind(changed.spent)
    // The budget of an ended run is no longer needed.
    .bind(state.is_terminal())
    .bind(changed.account)
    .bind(prepared.at_ms)
    .bind(found.run)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn write_events(
    connection: &mut SqliteConnection,
    found: &SqliteRunHead,
    prepared: &PreparedCommit,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut stored = Vec::new();
    let events: Vec<(&RunEvent, &String)> = prepared.events().collect();
    for rows in events.chunks(MAX_ROWS) {
        let head = match stored.last() {
            None => found.head,
            Some(StoredEvent { seq, .. }) => to_sql(*seq)?,
        };
        if insert_events(connection, found, prepared, head, rows).await? < rows.len() {
            // Some events already exist, because a resumed run publishes its earlier events again.
            // Insert one by one, so the numbers have no gaps.
            sqlx::query("DELETE FROM events WHERE run = ? AND seq > ?")
                .bind(found.run)
                .bind(head)
                .execute(&mut *connection)
                .await?;
            let mut head = head;
            for row in rows {
                let row = std::slice::from_ref(row);
                if insert_events(connection, found, prepared, head, row).await? > 0 {
                    head += 1;
                    stored.push(stored_event(prepared, head, row[0].0)?);
                }
            }
        } else {
            for (seq, (event, _)) in (head + 1..).zip(rows) {
                stored.push(stored_event(prepared, seq, event)?);
            }
        }
    }
    Ok(stored)
}

fn stored_event(
    prepared: &PreparedCommit,
    seq: i64,
    event: &RunEvent,
) -> Result<StoredEvent, StoreError> {
    let at_ms = prepared.commit.at_ms;
    Ok(StoredEvent { seq: unsigned(seq)?, at_ms, event: event.clone() })
}

/// Inserts the events whose key is new, numbered from `head + 1`. Returns how many were inserted.
async fn insert_events(
    connection: &mut SqliteConnection,
    found: &SqliteRunHead,
    prepared: &PreparedCommit,
    head: i64,
    events: &[(&RunEvent, &String)],
) -> Result<usize, StoreError> {
    let mut insert = QueryBuilder::new("INSERT INTO events (run, seq, key, at_ms, body) ");
    insert.push_values((head + 1..).zip(events), |mut row, (seq, (event, body))| {
        row.push_bind(found.run)
            .push_bind(seq)
            .push_bind(event.key.as_str())
            .push_bind(prepared.at_ms)
            .push_bind(body.as_str());
    });
    insert.push(" ON CONFLICT (run, key) DO NOTHING");
    execute_insert(connection, insert).await
}

/// Returns whether any result was new.
pub(crate) async fn write_results(
    connection: &mut SqliteConnection,
    id: &RunId,
    found: &SqliteRunHead,
    prepared: &PreparedCommit,
) -> Result<bool, StoreError> {
    let mut has_new_results = false;
    let results: Vec<(&EffectId, &JournalEntry, &String)> = prepared.results().collect();
    for rows in results.chunks(MAX_ROWS) {
        let mut insert = QueryBuilder::new(
            "INSERT INTO journal (run, effect_id, request_sha256, latency_ms, tries, result) ",
        );
        let mut latencies = Vec::with_capacity(rows.len());
        for (_, entry, _) in rows {
            latencies.push(to_sql(entry.timing.latency_ms)?);
        }
        insert.push_values(
            rows.iter().zip(latencies),
            |mut row, ((id, entry, result), latency)| {
                row.push_bind(found.run)
                    .push_bind(id.as_str())
                    .push_bind(entry.request_sha256.to_string())
                    .push_bind(latency)
                    .push_bind(i64::from(entry.timing.tries))
                    .push_bind(result.as_str());
            },
        );
        insert.push(" ON CONFLICT (run, effect_id) DO NOTHING");
        let new = execute_insert(connection, insert).await?;
        has_new_results |= new > 0;
        if new < rows.len() {
            for row in rows {
                compare_result(connection, id, found, *row).await?;
            }
        }
    }
    Ok(has_new_results)
}

/// Runs an insert and returns the number of rows.
async fn execute_insert(
    connection: &mut SqliteConnection,
    mut insert: QueryBuilder<Sqlite>,
) -> Result<usize, StoreError> {
    let done = insert.build().execute(connection).await?;
    Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
}

/// Whether the journal has exactly this entry. A different entry under the same id is an error.
async fn compare_result(
    connection: &mut SqliteConnection,
    run_id: &RunId,
    found: &SqliteRunHead,
    offered: (&EffectId, &JournalEntry, &String),
) -> Result<bool, StoreError> {
    let row: Option<(String, String)> = sqlx::query_as(
        "SELECT request_sha256, result FROM journal WHERE run = ? AND effect_id = ?",
    )
    .bind(found.run)
    .bind(offered.0.as_str())
    .fetch_optional(connection)
    .await?;
    let Some((request, result)) = row else { return Ok(false) };
    compare(run_id, offered, &request, &result)?;
    Ok(true)
}

/// Checks that a commit to an ended run only repeats what is stored.
async fn check_repetition(
    connection: &mut SqliteConnection,
    id: &RunId,
    found: &SqliteRunHead,
    prepared: &PreparedCommit,
) -> Result<(), StoreError> {
    let ended = || StoreError::RunEnded { run_id: id.clone(), state: found.state };
    if prepared.commit.state.is_some_and(|state| state != found.state) {
        return Err(ended());
    }
    if let Some(offered) = &prepared.commit.outcome {
        let stored: Option<String> = sqlx::query_scalar("SELECT outcome FROM runs WHERE run = ?")
            .bind(found.run)
            .fetch_one(&mut *connection)
            .await?;
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
                .await?;
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
