//! Locks across machines for driving a run and for calling a provider. They are PostgreSQL session
//! locks: the server releases them when the process or its machine dies, but not while the process
//! is merely stalled.
//!
//! One connection holds all locks of a process, because servers allow few connections. If it
//! breaks, the locks are taken again within seconds. If another process takes over a run in
//! between, the journal rejects whichever of the two writes a conflicting result second. Just after
//! a server start no slots are handed out, so that previous holders get theirs back first.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::{RunId, Sha256Hex};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::key;
use crate::{StoreError, rows};

/// How often the connection that holds the locks is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A server that does not respond for this long counts as unreachable.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// After a server start, how long previous holders have to take their slots again.
const STARTUP_GRACE: Duration = Duration::from_secs(10);

/// The connection that holds the locks, created on demand.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockHolder(Arc<Mutex<LockSession>>);

#[derive(Debug, Default)]
struct LockSession {
    connection: Option<PgConnection>,
    /// The locks it holds, or held before it broke.
    locks: BTreeSet<LockKey>,
    /// Whether a task monitors the connection.
    is_watched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LockKey {
    Run(Uuid),
    Slot { limiter: i32, slot: i32 },
}

/// A lock for driving one run or for one limiter slot. Held while this value exists and the process
/// keeps its connection.
#[derive(Debug)]
pub struct PgLock {
    lock: LockKey,
    holder: LockHolder,
}

impl LockHolder {
    /// Takes the lock for driving a run; `None` if another process holds it.
    pub(crate) async fn drive(
        &self,
        options: &PgConnectOptions,
        id: &RunId,
    ) -> Result<Option<PgLock>, StoreError> {
        let (holder, options, lock) = (self.clone(), options.clone(), LockKey::Run(key(id)?));
        run_detached(async move {
            let mut session = holder.0.lock().await;
            let taken = take(session.connected(&options).await?, lock).await?;
            Ok(taken.then(|| holder.register_lock(&mut session, &options, lock)))
        })
        .await
    }

    /// Takes one of `width` slots of a limiter; `None` if all are taken.
    pub(crate) async fn slot(
        &self,
        options: &PgConnectOptions,
        limiter: &str,
        width: u32,
    ) -> Result<Option<PgLock>, StoreError> {
        let (holder, options, limiter) = (self.clone(), options.clone(), lock_number(limiter));
        run_detached(async move {
            let mut session = holder.0.lock().await;
            let ours = session.slots_of(limiter);
            let found = free_slot(session.connected(&options).await?, limiter, width, ours).await?;
            let lock = |slot| LockKey::Slot { limiter, slot };
            Ok(found.map(|slot| holder.register_lock(&mut session, &options, lock(slot))))
        })
        .await
    }

    fn register_lock(
        &self,
        session: &mut LockSession,
        options: &PgConnectOptions,
        lock: LockKey,
    ) -> PgLock {
        session.locks.insert(lock);
        if !session.is_watched {
            session.is_watched = true;
            tokio::spawn(self.clone().watch(options.clone()));
        }
        PgLock { lock, holder: self.clone() }
    }

    /// Restores the locks after the connection broke, as long as there are any.
    async fn watch(self, options: PgConnectOptions) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let mut session = self.0.lock().await;
            if session.locks.is_empty() {
                session.is_watched = false;
                return;
            }
            // If the server is unreachable, the next round tries again.
            let _ = session.connected(&options).await;
        }
    }
}

/// Takes a lock in a spawned task, so that dropping the caller's future midway does not leak the
/// lock.
async fn run_detached(
    acquire: impl Future<Output = Result<Option<PgLock>, StoreError>> + Send + 'static,
) -> Result<Option<PgLock>, StoreError> {
    let answered = tokio::spawn(acquire).await;
    answered.unwrap_or_else(|_| Err(StoreError::Unreachable(sqlx::Error::WorkerCrashed)))
}

impl LockSession {
    /// The slots of a limiter that this process holds.
    fn slots_of(&self, limiter: i32) -> Vec<i32> {
        let slot = |lock: &LockKey| match lock {
            LockKey::Slot { limiter: of, slot } if *of == limiter => Some(*slot),
            LockKey::Slot { .. } | LockKey::Run(_) => None,
        };
        self.locks.iter().filter_map(slot).collect()
    }

    /// A responsive connection that holds all locks of this process.
    async fn connected(
        &mut self,
        options: &PgConnectOptions,
    ) -> Result<&mut PgConnection, StoreError> {
        if let Some(mut connection) = self.connection.take() {
            let answered = tokio::time::timeout(RESPONSE_TIMEOUT, connection.ping()).await;
            if matches!(answered, Ok(Ok(()))) {
                return Ok(self.connection.insert(connection));
            }
        }
        let reconnect = async {
            let mut connection = options.connect().await?;
            for lock in &self.locks {
                // If another process was faster, it now drives the run.
                take(&mut connection, *lock).await?;
            }
            Ok::<_, StoreError>(connection)
        };
        let timed_out = |_| Err(sqlx::Error::from(io::Error::from(io::ErrorKind::TimedOut)).into());
        let connection =
            tokio::time::timeout(RESPONSE_TIMEOUT, reconnect).await.unwrap_or_else(timed_out)?;
        Ok(self.connection.insert(connection))
    }
}

/// The lock number of a limiter.
fn lock_number(limiter: &str) -> i32 {
    let hash = Sha256Hex::of(limiter.as_bytes()).to_string();
    let first = hash.get(..8).and_then(|first| u32::from_str_radix(first, 16).ok());
    first.unwrap_or_default().cast_signed()
}

/// Takes a free slot of a limiter. A session can take the same lock twice, so our own slots are
/// excluded. This uses CASE because the evaluation order of AND is undefined.
async fn free_slot(
    connection: &mut PgConnection,
    limiter: i32,
    width: u32,
    ours: Vec<i32>,
) -> Result<Option<i32>, StoreError> {
    sqlx::query_scalar(
        "SELECT slot FROM generate_series(1, $2) AS slot
         WHERE CASE WHEN slot = ANY ($3) THEN false
                    WHEN pg_postmaster_start_time() > clock_timestamp() - make_interval(secs => $4)
                    THEN false
                    ELSE pg_try_advisory_lock($1, slot) END
         LIMIT 1",
    )
    .bind(limiter)
    .bind(i32::try_from(width).unwrap_or(i32::MAX))
    .bind(ours)
    .bind(STARTUP_GRACE.as_secs_f64())
    .fetch_optional(connection)
    .await
    .map_err(StoreError::from)
}

/// Takes a lock; `false` if another session holds it.
async fn take(connection: &mut PgConnection, lock: LockKey) -> Result<bool, StoreError> {
    let taking = match lock {
        // The seed 1 keeps these locks apart from other advisory locks in the database.
        LockKey::Run(run) => {
            sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1::text, 1))")
                .bind(run)
        }
        LockKey::Slot { limiter, slot } => {
            sqlx::query_scalar("SELECT pg_try_advisory_lock($1, $2)").bind(limiter).bind(slot)
        }
    };
    taking.fetch_one(connection).await.map_err(StoreError::from)
}

async fn release(connection: &mut PgConnection, lock: LockKey) -> Result<(), sqlx::Error> {
    let releasing = match lock {
        LockKey::Run(run) => {
            sqlx::query("SELECT pg_advisory_unlock(hashtextextended($1::text, 1))").bind(run)
        }
        LockKey::Slot { limiter, slot } => {
            sqlx::query("SELECT pg_advisory_unlock($1, $2)").bind(limiter).bind(slot)
        }
    };
    releasing.execute(connection).await.map(drop)
}

impl Drop for PgLock {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the connection closes with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (lock, holder) = (self.lock, self.holder.clone());
        runtime.spawn(async move {
            let mut session = holder.0.lock().await;
            session.locks.remove(&lock);
            if let Some(connection) = session.connection.as_mut() {
                // If the connection is broken, the lock is already released.
                let _ = tokio::time::timeout(RESPONSE_TIMEOUT, release(connection, lock)).await;
            }
        });
    }
}

/// The runs among `ids` that are being driven.
pub(crate) async fn driven_runs(
    pool: &PgPool,
    ids: &[RunId],
) -> Result<BTreeSet<RunId>, StoreError> {
    let keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
    // `pg_locks` shows the two halves of the lock number in separate columns.
    let found: Vec<String> = sqlx::query_scalar(
        "SELECT run::text FROM unnest($1) AS run
         JOIN pg_locks ON (classid::bigint << 32 | objid::bigint) = hashtextextended(run::text, 1)
         WHERE locktype = 'advisory' AND objsubid = 1 AND granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .bind(keys)
    .fetch_all(pool)
    .await?;
    found.iter().map(|id| rows::run_id(id)).collect()
}
