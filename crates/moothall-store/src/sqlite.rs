//! The store in one SQLite file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use moothall_core::access::RunLimitError;
use moothall_core::consult::{MoveApproval, ReviewChange, RunOutcomes};
use moothall_core::receipt::EffectTiming;
use moothall_core::{EffectId, MicroUsd, RunId, Sha256Hex};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions, SqliteRow};
use sqlx::{Sqlite, Transaction};

use crate::common_methods::common_requests;
use crate::prepared_commit::{PreparedCommit, text};
use crate::rows::{self, is_a_record, to_sql};
use crate::validation::{self, MAX_MATCHES};
use crate::{
    AdmissionDecision, AdmissionTerms, BatchAdmission, BatchStart, ControlRequest, JournalEntry,
    NewRun, RunCommit, RunFilter, RunMatch, RunOrder, RunPage, RunQuery, RunRow, RunState, Store,
    StoreError, StoreFuture, StoredEvent, TeamFilter,
};

mod accounts;
mod admit;
mod artifacts;
mod batch;
mod changes;
mod commit;
mod copy;
mod later_outcomes;
mod open;
mod space;

/// Number of reader connections. In WAL mode readers do not wait for the writer.
const READERS: u32 = 4;

/// Delay before retrying to open a busy file.
const OPEN_RETRY_DELAY: Duration = Duration::from_millis(10);

/// How long a request waits in its own process for a connection.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);

/// SQLite's name for an in-memory database.
const IN_MEMORY: &str = ":memory:";

/// The store in one SQLite file, for a laptop or one server.
///
/// Any number of processes on one machine can open the same file. Do not use it on a network file
/// system: SQLite's locks and shared memory do not work there.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// Exactly one connection. Two writers in one process would only wait for each other inside
    /// SQLite, which polls; the pool queues them instead.
    writer: SqlitePool,
    readers: SqlitePool,
}

impl SqliteStore {
    /// Opens the file. Creates it, readable only by its owner, and its parent directories if they
    /// are missing.
    ///
    /// Errors: [`StoreError::NotADatabase`], [`StoreError::ForeignDatabase`] and
    /// [`StoreError::NewerFormat`] leave the file unchanged.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let deadline = Instant::now() + open::BUSY_TIMEOUT;
        loop {
            match Self::try_open(path).await {
                // While another process switches the file to WAL or is the last to close it, SQLite
                // returns busy immediately and ignores the busy timeout.
                Err(StoreError::Busy(_)) if Instant::now() < deadline => {
                    tokio::time::sleep(OPEN_RETRY_DELAY).await;
                }
                opened => return opened,
            }
        }
    }

    async fn try_open(path: &Path) -> Result<Self, StoreError> {
        open::prepare(path).await?;
        let options = open::options(path);
        Ok(Self {
            path: path.to_owned(),
            writer: pool(1).connect_with(options.clone()).await?,
            readers: pool(READERS).connect_lazy_with(options.pragma("query_only", "ON")),
        })
    }

    /// A private in-memory store that is dropped with this value, for runs that are not kept.
    pub async fn in_memory() -> Result<Self, StoreError> {
        // Each in-memory connection has a separate database, so use exactly one.
        let only = pool(1).connect_with(open::memory()).await?;
        let mut connection = only.acquire().await?;
        open::prepare_connection(Path::new(IN_MEMORY), &mut connection).await?;
        drop(connection);
        Ok(Self { path: PathBuf::from(IN_MEMORY), writer: only.clone(), readers: only })
    }

    /// The path of the file, or `:memory:`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a consistent snapshot to a new file while others keep reading and writing. Deleted
    /// data is not included.
    pub async fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        copy::write(&self.path, path).await
    }

    /// Opens an untrusted file, checks that all of it is readable and that it contains only objects
    /// created by this program, and returns the number of runs.
    ///
    /// Errors: those of [`Self::open`], and [`StoreError::Unreadable`].
    pub async fn check_copy(path: &Path) -> Result<u64, StoreError> {
        copy::check(path).await
    }

    /// Closes the file once the requests in progress are done. Nothing is lost without it; with it,
    /// the `-wal` file is merged into the main file unless another process has it open.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    fn reads(&self) -> &SqlitePool {
        &self.readers
    }

    fn writes(&self) -> &SqlitePool {
        &self.writer
    }

    /// Starts a transaction that takes the write lock immediately. One that starts with a read
    /// could find its snapshot outdated when it first writes. Dropping it without a commit rolls it
    /// back.
    async fn begin_writing(&self) -> Result<Transaction<'_, Sqlite>, StoreError> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// If no row was written, checks that the run exists.
    async fn ensure_known(&self, id: &RunId, rows_written: u64) -> Result<(), StoreError> {
        match rows_written {
            0 => self.or_unknown(id, Vec::new()).await.map(drop),
            _ => Ok(()),
        }
    }

    /// If the result is empty, checks that the run exists.
    async fn or_unknown(
        &self,
        id: &RunId,
        rows: Vec<SqliteRow>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        if rows.is_empty() {
            sqlx::query("SELECT 1 FROM runs WHERE run_id = ?")
                .bind(id.as_str())
                .fetch_optional(&self.readers)
                .await?
                .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
        }
        Ok(rows)
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(QUEUE_TIMEOUT)
        // File connections do not go stale.
        .test_before_acquire(false)
        .max_lifetime(None)
        .idle_timeout(None)
}

impl Store for SqliteStore {
    common_requests!();

    fn run<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunRow>> {
        Box::pin(async move {
            let row = sqlx::query("SELECT * FROM runs WHERE run_id = ?")
                .bind(id.as_str())
                .fetch_optional(&self.readers)
                .await?;
            row.as_ref().map(rows::run_row).transpose()
        })
    }

    fn runs(&self, filter: RunFilter) -> StoreFuture<'_, Vec<RunRow>> {
        Box::pin(async move {
            let rows = sqlx::query(
                "SELECT * FROM runs WHERE (?1 IS NULL OR state = ?1) AND (?3 IS NULL OR team = ?3)
                 ORDER BY created_at_ms DESC, run_id DESC LIMIT ?2",
            )
            .bind(filter.state.map(RunState::as_str))
            .bind(i64::from(filter.limit))
            .bind(filter.teams.only())
            .fetch_all(&self.readers)
            .await?;
            rows.iter().map(rows::run_row).collect()
        })
    }

    fn run_page(&self, query: RunQuery) -> StoreFuture<'_, RunPage> {
        Box::pin(async move {
            const MATCHES: &str = "FROM runs WHERE (?1 IS NULL OR team = ?1)
                   AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR workflow = ?3)
                   AND (?4 IS NULL OR instr(lower(title), ?4) > 0 OR instr(lower(model), ?4) > 0
                        OR substr(run_id, 1, length(?4)) = ?4)";
            let order = match query.order {
                RunOrder::Newest => "created_at_ms DESC, run_id DESC",
                RunOrder::Oldest => "created_at_ms, run_id",
                RunOrder::Title => "title, created_at_ms DESC, run_id DESC",
                RunOrder::Model => "model, created_at_ms DESC, run_id DESC",
                RunOrder::Cost => {
                    "coalesce(json_extract(spent, '$.usd'), 0) DESC, created_at_ms DESC, run_id DESC"
                }
            };
            let (team, state, text) =
                (query.teams.only(), query.state.map(RunState::as_str), query.needle());
            let (page, count) = (
                format!("SELECT * {MATCHES} ORDER BY {order} LIMIT ?5 OFFSET ?6"),
                format!("SELECT count(*) {MATCHES}"),
            );
            let rows = sqlx::query(sqlx::AssertSqlSafe(page))
                .bind(team)
                .bind(state)
                .bind(query.workflow.as_deref())
                .bind(text.as_deref())
                .bind(i64::from(query.limit))
                .bind(i64::from(query.offset))
                .fetch_all(&self.readers)
                .await?;
            let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
                .bind(team)
                .bind(state)
                .bind(query.workflow.as_deref())
                .bind(text.as_deref())
                .fetch_one(&self.readers)
                .await?;
            let rows: Result<_, _> = rows.iter().map(rows::run_row).collect();
            Ok(RunPage { rows: rows?, total: rows::unsigned(total)? })
        })
    }

    fn find_runs<'a>(&'a self, prefix: &'a str, teams: TeamFilter) -> StoreFuture<'a, RunMatch> {
        Box::pin(async move {
            // A range instead of `LIKE`: it has no special characters and uses the index. Ids
            // consist of digits, a to f and dashes, which all sort before `g`.
            let ids: Vec<String> = sqlx::query_scalar(
                "SELECT run_id FROM runs WHERE run_id >= ?1 AND run_id < ?1 || 'g'
                   AND (?3 IS NULL OR team = ?3)
                 ORDER BY created_at_ms DESC, run_id DESC LIMIT ?2",
            )
            .bind(prefix)
            .bind(i64::from(MAX_MATCHES))
            .bind(teams.only())
            .fetch_all(&self.readers)
            .await?;
            validation::run_match(&ids)
        })
    }

    fn commit<'a>(&'a self, id: &'a RunId, commit: RunCommit) -> StoreFuture<'a, Vec<StoredEvent>> {
        Box::pin(async move {
            let prepared = PreparedCommit::new(commit)?;
            let mut transaction = self.begin_writing().await?;
            let stored = commit::write(&mut transaction, id, &prepared).await?;
            transaction.commit().await?;
            Ok(stored)
        })
    }

    fn begin<'a>(&'a self, id: &'a RunId, start: BatchStart) -> StoreFuture<'a, BatchAdmission> {
        Box::pin(async move {
            let BatchStart { commit, effects, reserve } = start;
            let prepared = PreparedCommit::new(commit)?;
            let mut transaction = self.begin_writing().await?;
            let admission =
                batch::begin(&mut transaction, id, &prepared, &effects, &reserve).await?;
            transaction.commit().await?;
            Ok(admission)
        })
    }

    fn journal<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        Box::pin(async move {
            let rows = sqlx::query(
                "SELECT effect_id, request_sha256, latency_ms, tries, result
                 FROM journal JOIN runs USING (run) WHERE run_id = ?",
            )
            .bind(id.as_str())
            .fetch_all(&self.readers)
            .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::journal_entry).collect()
        })
    }

    fn journal_entries<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        Box::pin(async move {
            let wanted = serde_json::json!(effects).to_string();
            let rows = sqlx::query(
                "SELECT effect_id, request_sha256, latency_ms, tries, result
                 FROM journal JOIN runs USING (run)
                 WHERE run_id = ? AND effect_id IN (SELECT value FROM json_each(?))",
            )
            .bind(id.as_str())
            .bind(wanted)
            .fetch_all(&self.readers)
            .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::journal_entry).collect()
        })
    }

    fn timings<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, EffectTiming>> {
        Box::pin(async move {
            let wanted = serde_json::json!(effects).to_string();
            let rows = sqlx::query(
                "SELECT effect_id, latency_ms, tries FROM journal JOIN runs USING (run)
                 WHERE run_id = ? AND effect_id IN (SELECT value FROM json_each(?))",
            )
            .bind(id.as_str())
            .bind(wanted)
            .fetch_all(&self.readers)
            .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::effect_timing).collect()
        })
    }

    fn events<'a>(
        &'a self,
        id: &'a RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>> {
        Box::pin(async move {
            let rows = sqlx::query(
                "SELECT seq, key, at_ms, body FROM events JOIN runs USING (run)
                 WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            )
            .bind(id.as_str())
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::stored_event).collect()
        })
    }

    fn heads<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, BTreeMap<RunId, u64>> {
        Box::pin(async move {
            // One parameter for all ids, so that following thousands of runs takes one query.
            let ids = text("the ids", &ids)?;
            let rows: Vec<(String, i64)> = sqlx::query_as(
                "SELECT run_id, head FROM json_each(?) JOIN runs ON run_id = json_each.value",
            )
            .bind(ids)
            .fetch_all(&self.readers)
            .await?;
            let head = |(id, head): &(String, i64)| {
                Ok((rows::run_id(id)?, u64::try_from(*head).unwrap_or_default()))
            };
            rows.iter().map(head).collect()
        })
    }

    fn artifact<'a>(
        &'a self,
        id: &'a RunId,
        sha256: &'a Sha256Hex,
    ) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let found = artifacts::find(&self.readers, id, sha256).await?;
            if found.is_none() {
                self.or_unknown(id, Vec::new()).await?;
            }
            Ok(found)
        })
    }

    fn request_control<'a>(
        &'a self,
        id: &'a RunId,
        request: ControlRequest,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut transaction = self.begin_writing().await?;
            let row = sqlx::query("SELECT state FROM runs WHERE run_id = ?")
                .bind(id.as_str())
                .fetch_optional(&mut *transaction)
                .await?
                .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
            let state = rows::run_state(&row)?;
            if state.is_terminal() {
                return Err(StoreError::RunEnded { run_id: id.clone(), state });
            }
            sqlx::query(
                "INSERT INTO wishes (run, wish) SELECT run, ? FROM runs WHERE run_id = ?
                 ON CONFLICT (run, wish) DO NOTHING",
            )
            .bind(request.as_str())
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
            Ok(transaction.commit().await?)
        })
    }

    fn clear_control<'a>(&'a self, id: &'a RunId, request: ControlRequest) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let done = sqlx::query(
                "DELETE FROM wishes
                 WHERE wish = ? AND run = (SELECT run FROM runs WHERE run_id = ?)",
            )
            .bind(request.as_str())
            .bind(id.as_str())
            .execute(&self.writer)
            .await?;
            self.ensure_known(id, done.rows_affected()).await
        })
    }

    fn control_requests<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeSet<ControlRequest>> {
        Box::pin(async move {
            let rows =
                sqlx::query("SELECT wish FROM wishes JOIN runs USING (run) WHERE run_id = ?")
                    .bind(id.as_str())
                    .fetch_all(&self.readers)
                    .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::control_request).collect()
        })
    }

    fn runs_with_control_request<'a>(
        &'a self,
        ids: &'a [RunId],
        request: ControlRequest,
    ) -> StoreFuture<'a, BTreeSet<RunId>> {
        Box::pin(async move {
            let found: Vec<String> = sqlx::query_scalar(
                "SELECT run_id FROM json_each(?) JOIN runs ON run_id = json_each.value
                 JOIN wishes USING (run) WHERE wish = ?",
            )
            .bind(text("the ids", &ids)?)
            .bind(request.as_str())
            .fetch_all(&self.readers)
            .await?;
            found.iter().map(|id| rows::run_id(id)).collect()
        })
    }

    fn approve<'a>(&'a self, id: &'a RunId, approval: MoveApproval) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            validation::check_approval(&approval)?;
            let done = sqlx::query(
                "INSERT INTO approvals (run, move_id, approved_by, note, at_ms)
                 SELECT run, ?, ?, ?, ? FROM runs WHERE run_id = ?
                 ON CONFLICT (run, move_id) DO NOTHING",
            )
            .bind(approval.move_id)
            .bind(approval.by)
            .bind(approval.note)
            .bind(to_sql(approval.at_ms)?)
            .bind(id.as_str())
            .execute(&self.writer)
            .await?;
            self.ensure_known(id, done.rows_affected()).await
        })
    }

    fn approvals<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<MoveApproval>> {
        Box::pin(async move {
            let rows = sqlx::query(
                "SELECT move_id, approved_by, note, at_ms FROM approvals JOIN runs USING (run)
                 WHERE run_id = ? ORDER BY move_id",
            )
            .bind(id.as_str())
            .fetch_all(&self.readers)
            .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::approval).collect()
        })
    }
}

is_a_record!(SqliteRow);

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
