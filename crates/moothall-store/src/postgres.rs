//! The store in a PostgreSQL database.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use moothall_core::access::RunLimitError;
use moothall_core::consult::{MoveApproval, ReviewChange, RunOutcomes};
use moothall_core::receipt::EffectTiming;
use moothall_core::{EffectId, MicroUsd, RunId, Sha256Hex};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use self::commit::{BatchCalls, WriteReply, WriteRequest};
use self::notifications::ChangeWatcher;
use self::write_coalescer::WriteCoalescer;
use crate::common_methods::common_requests;
use crate::prepared_commit::PreparedCommit;
use crate::rows::{self, RowReader as _, is_a_record, to_sql};
use crate::validation::{self, MAX_MATCHES};
use crate::{
    AdmissionDecision, AdmissionTerms, BatchAdmission, BatchStart, ControlRequest, JournalEntry,
    NewRun, RunCommit, RunFilter, RunMatch, RunOrder, RunPage, RunQuery, RunRow, RunState, Store,
    StoreError, StoreFuture, StoredEvent, TeamFilter,
};

mod accounts;
mod address;
mod admit;
mod artifacts;
mod changes;
mod commit;
mod control_requests;
mod later_outcomes;
mod locks;
mod notifications;
mod open;
mod quotas;
mod space;
mod write_coalescer;

pub use self::address::{InvalidPgAddress, PgAddress};
pub use self::locks::PgLock;

/// How long a request waits in its own process for a connection, including while the server
/// restarts.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request is retried after a server restart or failover.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// First retry delay; it doubles each time. Each delay gets a random addition of up to its own
/// length.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(20);

/// Maximum retry delay, without the random addition.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// Connections idle for this long are closed, because servers allow few.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// The columns of a run that [`rows::run_row`] reads.
macro_rules! run_columns {
    () => {
        "run_id::text, team, token_id, cap_micro_usd, workflow, title, input, model, build,
         created_at_ms, state, updated_at_ms, head, outcome, spent"
    };
}

/// The store in a PostgreSQL database, for many processes on many machines.
///
/// Does not work through a transaction-level connection pooler: session settings, prepared
/// statements and `LISTEN` would break.
#[derive(Debug)]
pub struct PgStore {
    address: PgAddress,
    pool: PgPool,
    coalescer: WriteCoalescer,
    watcher: ChangeWatcher,
    holder: locks::LockHolder,
}

impl PgStore {
    /// Opens the database with at most `connections` connections. Creates missing tables in a
    /// separate schema and migrates older ones.
    ///
    /// Errors: [`StoreError::Unsuitable`], [`StoreError::ForeignDatabase`],
    /// [`StoreError::NewerFormat`] and [`StoreError::Unreachable`] leave the database unchanged.
    pub async fn open(address: &PgAddress, connections: u32) -> Result<Self, StoreError> {
        open::prepare(address).await?;
        let pool = PgPoolOptions::new()
            .max_connections(connections.max(1))
            .acquire_timeout(QUEUE_TIMEOUT)
            .idle_timeout(IDLE_TIMEOUT)
            .connect_lazy_with(address.options());
        let watcher = ChangeWatcher::new(&pool, address.options());
        let holder = locks::LockHolder::default();
        let coalescer = WriteCoalescer::default();
        Ok(Self { address: address.clone(), pool, coalescer, watcher, holder })
    }

    /// Location as `host:port/database`.
    pub fn location(&self) -> String {
        self.address.location()
    }

    /// The version string of the server.
    pub async fn server_version(&self) -> Result<String, StoreError> {
        sqlx::query_scalar("SHOW server_version")
            .fetch_one(&self.pool)
            .await
            .map_err(StoreError::from)
    }

    /// Takes the lock for driving a run; `None` if another process holds it, on any machine.
    pub async fn drive(&self, id: &RunId) -> Result<Option<PgLock>, StoreError> {
        self.holder.drive(&self.address.options(), id).await
    }

    /// Takes one of `width` slots of a model limiter shared by all processes on all machines;
    /// `None` if all are taken or the server has just started.
    pub async fn slot(&self, limiter: &str, width: u32) -> Result<Option<PgLock>, StoreError> {
        self.holder.slot(&self.address.options(), limiter, width).await
    }

    /// Books `amount` units of a quota shared by all processes: one unit per `period`, and up to
    /// `burst` units at the same time. Returns how long to wait before they may be used.
    pub async fn book_quota(
        &self,
        name: &str,
        amount: u32,
        period: Duration,
        burst: u32,
    ) -> Result<Duration, StoreError> {
        quotas::book(&self.pool, name, amount, period, burst).await
    }

    /// The runs among `ids` that are being driven by some process, on any machine.
    pub async fn driven(&self, ids: &[RunId]) -> Result<BTreeSet<RunId>, StoreError> {
        locks::driven_runs(&self.pool, ids).await
    }

    /// Closes all connections once the requests in progress are done.
    pub async fn close(&self) {
        self.watcher.close().await;
        self.pool.close().await;
    }

    /// Writes to a run, in one transaction with concurrent writes to it.
    async fn send(&self, id: &RunId, request: WriteRequest) -> Result<WriteReply, StoreError> {
        let reply = self.coalescer.send(&self.pool, id, request).await?;
        if !reply.stored.is_empty() {
            self.watcher.notify();
        }
        Ok(reply)
    }

    /// The journal entries of these effects, or of all.
    async fn journal_of(
        &self,
        id: &RunId,
        effects: Option<Vec<String>>,
    ) -> Result<BTreeMap<EffectId, JournalEntry>, StoreError> {
        let query = || async {
            let rows = sqlx::query(
                "SELECT effect_id, encode(request_sha256, 'hex') AS request_sha256, latency_ms,
                        tries, result
                 FROM journal WHERE run_id = $1 AND ($2::text[] IS NULL OR effect_id = ANY($2))",
            )
            .bind(key(id)?)
            .bind(effects.as_deref())
            .fetch_all(&self.pool)
            .await?;
            self.or_unknown(id, rows).await
        };
        with_retries(query).await?.iter().map(rows::journal_entry).collect()
    }

    fn reads(&self) -> &PgPool {
        &self.pool
    }

    fn writes(&self) -> &PgPool {
        &self.pool
    }

    async fn begin_writing(&self) -> Result<Transaction<'_, Postgres>, StoreError> {
        Ok(self.pool.begin().await?)
    }

    /// If no row was written, checks that the run exists.
    async fn ensure_known(&self, id: &RunId, rows_written: u64) -> Result<(), StoreError> {
        match rows_written {
            0 => self.or_unknown(id, Vec::new()).await.map(drop),
            _ => Ok(()),
        }
    }

    /// If the result is empty, checks that the run exists.
    async fn or_unknown(&self, id: &RunId, rows: Vec<PgRow>) -> Result<Vec<PgRow>, StoreError> {
        if rows.is_empty() {
            sqlx::query("SELECT 1 FROM runs WHERE run_id = $1")
                .bind(key(id)?)
                .fetch_optional(&self.pool)
                .await?
                .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
        }
        Ok(rows)
    }
}

/// Retries a request while the server is unreachable. Only for idempotent requests.
async fn with_retries<T, Attempt>(attempt: impl Fn() -> Attempt) -> Result<T, StoreError>
where
    Attempt: Future<Output = Result<T, StoreError>>,
{
    let deadline = Instant::now() + RETRY_TIMEOUT;
    let mut retry_delays = retry_delays();
    loop {
        match (attempt().await, retry_delays.next()) {
            (Err(StoreError::Unreachable(_)), Some(pause)) if Instant::now() + pause < deadline => {
                tokio::time::sleep(pause).await;
            }
            (answer, _) => return answer,
        }
    }
}

/// An endless sequence of retry delays. They are randomized so that processes that lost the same
/// server do not all reconnect at the same time.
fn retry_delays() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::new()
        .with_min_delay(MIN_RETRY_DELAY)
        .with_max_delay(MAX_RETRY_DELAY)
        .without_max_times()
        .with_jitter()
        .build()
}

/// The run id as a UUID.
fn key(id: &RunId) -> Result<Uuid, StoreError> {
    id.as_str().parse().map_err(|_| StoreError::Misfit("the run id is not a UUID"))
}

/// How a run's row is locked until the end of a transaction.
#[derive(Debug, Clone, Copy)]
enum RowLock {
    /// Exclusively: no other writer.
    Exclusive,
    /// Shared: others may hold it too, but the run cannot end or be deleted.
    Shared,
}

/// The run's row as locked by a request.
struct PgRunHead {
    head: i64,
    state: RunState,
    spent: Option<String>,
    budget: Option<String>,
}

/// Locks the row of a run.
async fn lock_row(
    connection: &mut PgConnection,
    id: &RunId,
    mode: RowLock,
) -> Result<PgRunHead, StoreError> {
    let statement = match mode {
        RowLock::Exclusive => {
            "SELECT head, state, spent, purse FROM runs WHERE run_id = $1 FOR NO KEY UPDATE"
        }
        RowLock::Shared => "SELECT head, state, spent, purse FROM runs WHERE run_id = $1 FOR SHARE",
    };
    let row = sqlx::query(statement)
        .bind(key(id)?)
        .fetch_optional(connection)
        .await?
        .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    Ok(PgRunHead {
        head: row.number("head")?,
        state: rows::run_state(&row)?,
        spent: row.optional_text("spent")?.map(str::to_owned),
        budget: row.optional_text("purse")?.map(str::to_owned),
    })
}

/// The first and last id with this prefix; `None` if the prefix is invalid.
fn id_range(prefix: &str) -> Option<(Uuid, Uuid)> {
    let filled = |rest: &str| {
        let text = format!("{prefix}{}", rest.get(prefix.len()..)?);
        // Reject other UUID spellings, which are not valid run ids.
        text.parse::<RunId>().ok()?;
        text.parse().ok()
    };
    let first = filled("00000000-0000-0000-0000-000000000000")?;
    Some((first, filled("ffffffff-ffff-ffff-ffff-ffffffffffff")?))
}

impl Store for PgStore {
    common_requests!();

    fn run<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunRow>> {
        Box::pin(with_retries(move || async move {
            let row =
                sqlx::query(concat!("SELECT ", run_columns!(), " FROM runs WHERE run_id = $1"))
                    .bind(key(id)?)
                    .fetch_optional(&self.pool)
                    .await?;
            row.as_ref().map(rows::run_row).transpose()
        }))
    }

    fn runs(&self, filter: RunFilter) -> StoreFuture<'_, Vec<RunRow>> {
        Box::pin(async move {
            let rows = sqlx::query(concat!(
                "SELECT ",
                run_columns!(),
                " FROM runs WHERE ($1::text IS NULL OR state = $1)
                    AND ($3::text IS NULL OR team = $3)
                  ORDER BY created_at_ms DESC, runs.run_id DESC LIMIT $2"
            ))
            .bind(filter.state.map(RunState::as_str))
            .bind(i64::from(filter.limit))
            .bind(filter.teams.only())
            .fetch_all(&self.pool)
            .await?;
            rows.iter().map(rows::run_row).collect()
        })
    }

    fn run_page(&self, query: RunQuery) -> StoreFuture<'_, RunPage> {
        Box::pin(async move {
            const MATCHES: &str = "FROM runs WHERE ($1::text IS NULL OR team = $1)
                   AND ($2::text IS NULL OR state = $2) AND ($3::text IS NULL OR workflow = $3)
                   AND ($4::text IS NULL OR strpos(lower(title), $4) > 0
                        OR strpos(lower(model), $4) > 0 OR starts_with(run_id::text, $4))";
            let order = match query.order {
                RunOrder::Newest => "created_at_ms DESC, runs.run_id DESC",
                RunOrder::Oldest => "created_at_ms, runs.run_id",
                RunOrder::Title => "title COLLATE \"C\", created_at_ms DESC, runs.run_id DESC",
                RunOrder::Model => "model COLLATE \"C\", created_at_ms DESC, runs.run_id DESC",
                RunOrder::Cost => {
                    "coalesce((spent::json->>'usd')::numeric, 0) DESC, created_at_ms DESC,
                     runs.run_id DESC"
                }
            };
            let (team, state, text) =
                (query.teams.only(), query.state.map(RunState::as_str), query.needle());
            let columns = run_columns!();
            let (page, count) = (
                format!("SELECT {columns} {MATCHES} ORDER BY {order} LIMIT $5 OFFSET $6"),
                format!("SELECT count(*) {MATCHES}"),
            );
            let rows = sqlx::query(sqlx::AssertSqlSafe(page))
                .bind(team)
                .bind(state)
                .bind(query.workflow.as_deref())
                .bind(text.as_deref())
                .bind(i64::from(query.limit))
                .bind(i64::from(query.offset))
                .fetch_all(&self.pool)
                .await?;
            let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
                .bind(team)
                .bind(state)
                .bind(query.workflow.as_deref())
                .bind(text.as_deref())
                .fetch_one(&self.pool)
                .await?;
            let rows: Result<_, _> = rows.iter().map(rows::run_row).collect();
            Ok(RunPage { rows: rows?, total: rows::unsigned(total)? })
        })
    }

    fn find_runs<'a>(&'a self, prefix: &'a str, teams: TeamFilter) -> StoreFuture<'a, RunMatch> {
        let range = id_range(prefix);
        Box::pin(async move {
            let Some((first, last)) = range else { return Ok(RunMatch::None) };
            let ids: Vec<String> = sqlx::query_scalar(
                "SELECT run_id::text FROM runs WHERE run_id BETWEEN $1 AND $2
                   AND ($4::text IS NULL OR team = $4)
                 ORDER BY created_at_ms DESC, runs.run_id DESC LIMIT $3",
            )
            .bind(first)
            .bind(last)
            .bind(i64::from(MAX_MATCHES))
            .bind(teams.only())
            .fetch_all(&self.pool)
            .await?;
            validation::run_match(&ids)
        })
    }

    fn commit<'a>(&'a self, id: &'a RunId, commit: RunCommit) -> StoreFuture<'a, Vec<StoredEvent>> {
        Box::pin(async move {
            let request = WriteRequest { prepared: PreparedCommit::new(commit)?, calls: None };
            Ok(self.send(id, request).await?.stored)
        })
    }

    fn begin<'a>(&'a self, id: &'a RunId, batch: BatchStart) -> StoreFuture<'a, BatchAdmission> {
        Box::pin(async move {
            let BatchStart { commit, effects, reserve } = batch;
            let calls = Some(BatchCalls { effects, reserve });
            let request = WriteRequest { prepared: PreparedCommit::new(commit)?, calls };
            Ok(self.send(id, request).await?.admission)
        })
    }

    fn journal<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        Box::pin(async move { self.journal_of(id, None).await })
    }

    fn journal_entries<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        let effects = effects.iter().map(ToString::to_string).collect();
        Box::pin(async move { self.journal_of(id, Some(effects)).await })
    }

    fn timings<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, EffectTiming>> {
        let effects: Vec<String> = effects.iter().map(ToString::to_string).collect();
        Box::pin(async move {
            let query = || async {
                let rows = sqlx::query(
                    "SELECT effect_id, latency_ms, tries FROM journal
                     WHERE run_id = $1 AND effect_id = ANY($2)",
                )
                .bind(key(id)?)
                .bind(effects.as_slice())
                .fetch_all(&self.pool)
                .await?;
                self.or_unknown(id, rows).await
            };
            with_retries(query).await?.iter().map(rows::effect_timing).collect()
        })
    }

    fn events<'a>(
        &'a self,
        id: &'a RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>> {
        Box::pin(async move {
            let query = || async {
                let rows = sqlx::query(
                    "SELECT seq, key, at_ms, body FROM events
                     WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
                )
                .bind(key(id)?)
                .bind(i64::try_from(after).unwrap_or(i64::MAX))
                .bind(i64::from(limit))
                .fetch_all(&self.pool)
                .await?;
                self.or_unknown(id, rows).await
            };
            with_retries(query).await?.iter().map(rows::stored_event).collect()
        })
    }

    fn heads<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, BTreeMap<RunId, u64>> {
        Box::pin(async move {
            let keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
            let rows: Vec<(String, i64)> =
                sqlx::query_as("SELECT run_id::text, head FROM runs WHERE run_id = ANY ($1)")
                    .bind(keys)
                    .fetch_all(&self.pool)
                    .await?;
            let head = |(id, head): &(String, i64)| Ok((rows::run_id(id)?, rows::unsigned(*head)?));
            rows.iter().map(head).collect()
        })
    }

    fn wait_for_change(
        &self,
        seen: u64,
        poll_interval: Duration,
    ) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(self.watcher.wait_for_change(seen, poll_interval))
    }

    fn artifact<'a>(
        &'a self,
        id: &'a RunId,
        sha256: &'a Sha256Hex,
    ) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let found = with_retries(|| artifacts::find(&self.pool, id, sha256)).await?;
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
        Box::pin(async move { control_requests::add(self, id, request).await })
    }

    fn clear_control<'a>(&'a self, id: &'a RunId, request: ControlRequest) -> StoreFuture<'a, ()> {
        Box::pin(async move { control_requests::remove(self, id, request).await })
    }

    fn control_requests<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeSet<ControlRequest>> {
        Box::pin(async move { with_retries(|| control_requests::all(self, id)).await })
    }

    fn runs_with_control_request<'a>(
        &'a self,
        ids: &'a [RunId],
        request: ControlRequest,
    ) -> StoreFuture<'a, BTreeSet<RunId>> {
        Box::pin(control_requests::runs_with(self, ids, request))
    }

    fn approve<'a>(&'a self, id: &'a RunId, approval: MoveApproval) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            validation::check_approval(&approval)?;
            let mut transaction = self.begin_writing().await?;
            lock_row(&mut transaction, id, RowLock::Shared).await?;
            sqlx::query(
                "INSERT INTO approvals (run_id, move_id, approved_by, note, at_ms)
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run_id, move_id) DO NOTHING",
            )
            .bind(key(id)?)
            .bind(approval.move_id)
            .bind(approval.by)
            .bind(approval.note)
            .bind(to_sql(approval.at_ms)?)
            .execute(&mut *transaction)
            .await?;
            Ok(transaction.commit().await?)
        })
    }

    fn approvals<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<MoveApproval>> {
        Box::pin(async move {
            let rows = sqlx::query(
                "SELECT move_id, approved_by, note, at_ms FROM approvals
                 WHERE run_id = $1 ORDER BY move_id",
            )
            .bind(key(id)?)
            .fetch_all(&self.pool)
            .await?;
            self.or_unknown(id, rows).await?.iter().map(rows::approval).collect()
        })
    }
}

is_a_record!(PgRow);

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
