//! The store in a PostgreSQL database.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use moothall_core::access::Excess;
use moothall_core::consult::{Approval, Change};
use moothall_core::{EffectId, MicroUsd, RunId, Sha256Hex};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use self::commit::{Calls, Reply, Request};
use self::convoy::Convoy;
use self::watch::Watch;
use crate::prepared::Prepared;
use crate::requests::common_requests;
use crate::rows::{self, Record as _, is_a_record, to_sql};
use crate::rules::{self, CANDIDATES};
use crate::{
    Admission, Beginning, Begun, Commit, JournalEntry, NewRun, RunFilter, RunMatch, RunRow,
    RunState, Store, StoreError, StoreFuture, StoredEvent, Teams, Terms, Wish,
};

mod accounts;
mod address;
mod admit;
mod artifacts;
mod changes;
mod commit;
mod convoy;
mod driving;
mod open;
mod space;
mod watch;
mod wishes;

pub use self::address::{InvalidPgAddress, PgAddress};
pub use self::driving::PgLock;

/// How long a request stands in the queue of its own process for a connection. A server that is
/// starting again is waited for as long.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request is made again that a restart of the server or a change of its primary broke.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first pause before it is made again; each one is twice as long as the last. A random part of at
/// most its own length is added to each.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause, without the random part.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A connection that nobody needed for so long is given back: servers have few.
const IDLE: Duration = Duration::from_secs(300);

/// The columns of a run as [`rows::run_row`] reads them.
macro_rules! run_columns {
    () => {
        "run_id::text, team, token_id, cap_micro_usd, workflow, title, input, model, build,
         created_at_ms, state, updated_at_ms, head, outcome, spent"
    };
}

/// The store in a PostgreSQL database, for many processes on many machines.
///
/// Not through a pooler that gives a transaction any connection: settings of a session, prepared
/// statements and `LISTEN` do not work there.
#[derive(Debug)]
pub struct PgStore {
    address: PgAddress,
    pool: PgPool,
    convoy: Convoy,
    watch: Watch,
    holder: driving::Holder,
}

impl PgStore {
    /// Opens the database with at most so many connections. If our tables are missing they are made,
    /// in a schema of their own; older ones are brought up to date.
    ///
    /// Errors: [`StoreError::Unsuitable`], [`StoreError::ForeignDatabase`],
    /// [`StoreError::NewerFormat`] and [`StoreError::Unreachable`] leave the database as it was.
    pub async fn open(address: &PgAddress, connections: u32) -> Result<Self, StoreError> {
        open::prepare(address).await?;
        let pool = PgPoolOptions::new()
            .max_connections(connections.max(1))
            .acquire_timeout(QUEUE_TIMEOUT)
            .idle_timeout(IDLE)
            .connect_lazy_with(address.options());
        let watch = Watch::new(&pool, address.options());
        let holder = driving::Holder::default();
        let convoy = Convoy::default();
        Ok(Self { address: address.clone(), pool, convoy, watch, holder })
    }

    /// Where the database is, as `host:port/database`.
    pub fn place(&self) -> String {
        self.address.place()
    }

    /// The version of the server, in its own words.
    pub async fn server_version(&self) -> Result<String, StoreError> {
        sqlx::query_scalar("SHOW server_version")
            .fetch_one(&self.pool)
            .await
            .map_err(StoreError::from)
    }

    /// Takes the right to drive a run; nothing where a process has it, on whatever machine.
    pub async fn drive(&self, id: &RunId) -> Result<Option<PgLock>, StoreError> {
        self.holder.drive(&self.address.options(), id).await
    }

    /// Takes one of so many slots of a lane that all processes share, on whatever machine; nothing where
    /// all are taken, or where the server has just started.
    pub async fn slot(&self, lane: &str, width: u32) -> Result<Option<PgLock>, StoreError> {
        self.holder.slot(&self.address.options(), lane, width).await
    }

    /// Which of these runs a process drives at the moment, on whatever machine.
    pub async fn driven(&self, ids: &[RunId]) -> Result<BTreeSet<RunId>, StoreError> {
        driving::driven(&self.pool, ids).await
    }

    /// Gives all connections back once the requests under way are done.
    pub async fn close(&self) {
        self.watch.close().await;
        self.pool.close().await;
    }

    /// Writes to a run, together with others who do.
    async fn send(&self, id: &RunId, request: Request) -> Result<Reply, StoreError> {
        let reply = self.convoy.send(&self.pool, id, request).await?;
        if !reply.stored.is_empty() {
            self.watch.tell();
        }
        Ok(reply)
    }

    /// What was answered to these effects of a run, or to all.
    async fn journal_of(
        &self,
        id: &RunId,
        effects: Option<Vec<String>>,
    ) -> Result<BTreeMap<EffectId, JournalEntry>, StoreError> {
        let ask = || async {
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
        patiently(ask).await?.iter().map(rows::journal_entry).collect()
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

    /// Nothing written means that there was nothing to do, or that there is no such run.
    async fn ensure_known(&self, id: &RunId, rows_written: u64) -> Result<(), StoreError> {
        match rows_written {
            0 => self.or_unknown(id, Vec::new()).await.map(drop),
            _ => Ok(()),
        }
    }

    /// An empty answer means that there is nothing, or that there is no such run.
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

/// Makes a request again while the server is away. Only for those that may be repeated.
async fn patiently<T, Asked>(ask: impl Fn() -> Asked) -> Result<T, StoreError>
where
    Asked: Future<Output = Result<T, StoreError>>,
{
    let deadline = Instant::now() + PATIENCE;
    let mut pauses = pauses();
    loop {
        match (ask().await, pauses.next()) {
            (Err(StoreError::Unreachable(_)), Some(pause)) if Instant::now() + pause < deadline => {
                tokio::time::sleep(pause).await;
            }
            (answer, _) => return answer,
        }
    }
}

/// The pauses between repeated requests, without end. Each is random within its range, so that processes
/// that lost the same server do not all come back at the same moments.
fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times()
        .with_jitter()
        .build()
}

/// The id as the database knows it.
fn key(id: &RunId) -> Result<Uuid, StoreError> {
    id.as_str().parse().map_err(|_| StoreError::Misfit("the id of the run is not a UUID"))
}

/// How the row of a run is held until the end of a transaction.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// Nobody else writes to the run.
    Alone,
    /// Others may hold it as well; it neither ends nor goes away meanwhile.
    Shared,
}

/// The run's row as a request finds it.
struct Found {
    head: i64,
    state: RunState,
    spent: Option<String>,
    purse: Option<String>,
}

/// Holds the row of a run.
async fn hold(connection: &mut PgConnection, id: &RunId, hold: Hold) -> Result<Found, StoreError> {
    let statement = match hold {
        Hold::Alone => {
            "SELECT head, state, spent, purse FROM runs WHERE run_id = $1 FOR NO KEY UPDATE"
        }
        Hold::Shared => "SELECT head, state, spent, purse FROM runs WHERE run_id = $1 FOR SHARE",
    };
    let row = sqlx::query(statement)
        .bind(key(id)?)
        .fetch_optional(connection)
        .await?
        .ok_or_else(|| StoreError::UnknownRun(id.clone()))?;
    Ok(Found {
        head: row.number("head")?,
        state: rows::run_state(&row)?,
        spent: row.optional_text("spent")?.map(str::to_owned),
        purse: row.optional_text("purse")?.map(str::to_owned),
    })
}

/// The first and the last id that begin so; nothing where no id does.
fn ids_that_begin(prefix: &str) -> Option<(Uuid, Uuid)> {
    let filled = |rest: &str| {
        let text = format!("{prefix}{}", rest.get(prefix.len()..)?);
        // What is read as an id in another spelling is not one of ours.
        text.parse::<RunId>().ok()?;
        text.parse().ok()
    };
    let first = filled("00000000-0000-0000-0000-000000000000")?;
    Some((first, filled("ffffffff-ffff-ffff-ffff-ffffffffffff")?))
}

impl Store for PgStore {
    common_requests!();

    fn run<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunRow>> {
        Box::pin(patiently(move || async move {
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

    fn find_runs<'a>(&'a self, prefix: &'a str, teams: Teams) -> StoreFuture<'a, RunMatch> {
        let range = ids_that_begin(prefix);
        Box::pin(async move {
            let Some((first, last)) = range else { return Ok(RunMatch::None) };
            let ids: Vec<String> = sqlx::query_scalar(
                "SELECT run_id::text FROM runs WHERE run_id BETWEEN $1 AND $2
                   AND ($4::text IS NULL OR team = $4)
                 ORDER BY created_at_ms DESC, runs.run_id DESC LIMIT $3",
            )
            .bind(first)
            .bind(last)
            .bind(i64::from(CANDIDATES))
            .bind(teams.only())
            .fetch_all(&self.pool)
            .await?;
            rules::run_match(&ids)
        })
    }

    fn commit<'a>(&'a self, id: &'a RunId, commit: Commit) -> StoreFuture<'a, Vec<StoredEvent>> {
        Box::pin(async move {
            let request = Request { prepared: Prepared::new(commit)?, calls: None };
            Ok(self.send(id, request).await?.stored)
        })
    }

    fn begin<'a>(&'a self, id: &'a RunId, beginning: Beginning) -> StoreFuture<'a, Begun> {
        Box::pin(async move {
            let Beginning { commit, effects, reserve } = beginning;
            let calls = Some(Calls { effects, reserve });
            let request = Request { prepared: Prepared::new(commit)?, calls };
            Ok(self.send(id, request).await?.begun)
        })
    }

    fn journal<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        Box::pin(async move { self.journal_of(id, None).await })
    }

    fn answers<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        let effects = effects.iter().map(ToString::to_string).collect();
        Box::pin(async move { self.journal_of(id, Some(effects)).await })
    }

    fn events<'a>(
        &'a self,
        id: &'a RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>> {
        Box::pin(async move {
            let ask = || async {
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
            patiently(ask).await?.iter().map(rows::stored_event).collect()
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

    fn movement(
        &self,
        seen: u64,
        look_again: Duration,
    ) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(self.watch.movement(seen, look_again))
    }

    fn artifact<'a>(
        &'a self,
        id: &'a RunId,
        sha256: &'a Sha256Hex,
    ) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let found = patiently(|| artifacts::find(&self.pool, id, sha256)).await?;
            if found.is_none() {
                self.or_unknown(id, Vec::new()).await?;
            }
            Ok(found)
        })
    }

    fn ask<'a>(&'a self, id: &'a RunId, wish: Wish) -> StoreFuture<'a, ()> {
        Box::pin(async move { wishes::add(self, id, wish).await })
    }

    fn withdraw<'a>(&'a self, id: &'a RunId, wish: Wish) -> StoreFuture<'a, ()> {
        Box::pin(async move { wishes::take_back(self, id, wish).await })
    }

    fn wishes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeSet<Wish>> {
        Box::pin(async move { patiently(|| wishes::all(self, id)).await })
    }

    fn wished<'a>(&'a self, ids: &'a [RunId], wish: Wish) -> StoreFuture<'a, BTreeSet<RunId>> {
        Box::pin(wishes::of(self, ids, wish))
    }

    fn approve<'a>(&'a self, id: &'a RunId, approval: Approval) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            rules::check_approval(&approval)?;
            let mut transaction = self.begin_writing().await?;
            hold(&mut transaction, id, Hold::Shared).await?;
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

    fn approvals<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<Approval>> {
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
