//! Who drives a run and who may ask a provider, on whatever machine: locks of a session, which the
//! server frees when the process or its machine dies, and not while it merely stands still.
//!
//! All locks of a process are held by one connection: servers have few. Should the connection break,
//! they are taken again within seconds. Another process may have been faster to drive a run; then the
//! journal refuses whoever comes second with another answer. Slots are not given to anybody as long as
//! a server has just started: those who had them come first.

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

/// How often it is looked whether the connection still holds the locks.
const LOOK: Duration = Duration::from_secs(2);

/// A server that says nothing for so long is gone, whatever the connection looks like.
const SILENCE: Duration = Duration::from_secs(5);

/// After the start of a server, how long those who had slots before may take to have them again.
const OTHERS_FIRST: Duration = Duration::from_secs(10);

/// The connection that holds the locks, once there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Holder(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    connection: Option<PgConnection>,
    /// The locks that it has, or had before it broke.
    locks: BTreeSet<Lock>,
    /// Whether somebody looks after the connection.
    is_watched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lock {
    Run(Uuid),
    Slot { lane: i32, slot: i32 },
}

/// The right to drive one run, or to one slot of a lane, as long as this value lives and its process
/// has its connection.
#[derive(Debug)]
pub struct PgLock {
    lock: Lock,
    holder: Holder,
}

impl Holder {
    /// Takes the right to drive a run; nothing where another process has it.
    pub(super) async fn drive(
        &self,
        options: &PgConnectOptions,
        id: &RunId,
    ) -> Result<Option<PgLock>, StoreError> {
        let (holder, options, lock) = (self.clone(), options.clone(), Lock::Run(key(id)?));
        to_its_end(async move {
            let mut held = holder.0.lock().await;
            let taken = take(held.connected(&options).await?, lock).await?;
            Ok(taken.then(|| holder.hold(&mut held, &options, lock)))
        })
        .await
    }

    /// Takes one of so many slots of a lane; nothing where all are taken.
    pub(super) async fn slot(
        &self,
        options: &PgConnectOptions,
        lane: &str,
        width: u32,
    ) -> Result<Option<PgLock>, StoreError> {
        let (holder, options, lane) = (self.clone(), options.clone(), number_of(lane));
        to_its_end(async move {
            let mut held = holder.0.lock().await;
            let ours = held.slots_of(lane);
            let found = free_slot(held.connected(&options).await?, lane, width, ours).await?;
            let lock = |slot| Lock::Slot { lane, slot };
            Ok(found.map(|slot| holder.hold(&mut held, &options, lock(slot))))
        })
        .await
    }

    fn hold(&self, held: &mut Held, options: &PgConnectOptions, lock: Lock) -> PgLock {
        held.locks.insert(lock);
        if !held.is_watched {
            held.is_watched = true;
            tokio::spawn(self.clone().watch(options.clone()));
        }
        PgLock { lock, holder: self.clone() }
    }

    /// Takes the locks again where the connection broke, as long as there is one to hold.
    async fn watch(self, options: PgConnectOptions) {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut held = self.0.lock().await;
            if held.locks.is_empty() {
                held.is_watched = false;
                return;
            }
            // A server that is away is looked for again.
            let _ = held.connected(&options).await;
        }
    }
}

/// Asks for a lock in a task of its own: one that was asked for and that nobody waits for any more
/// would stay taken.
async fn to_its_end(
    asked: impl Future<Output = Result<Option<PgLock>, StoreError>> + Send + 'static,
) -> Result<Option<PgLock>, StoreError> {
    let answered = tokio::spawn(asked).await;
    answered.unwrap_or_else(|_| Err(StoreError::Unreachable(sqlx::Error::WorkerCrashed)))
}

impl Held {
    /// The slots of a lane that this process has.
    fn slots_of(&self, lane: i32) -> Vec<i32> {
        let slot = |lock: &Lock| match lock {
            Lock::Slot { lane: of, slot } if *of == lane => Some(*slot),
            Lock::Slot { .. } | Lock::Run(_) => None,
        };
        self.locks.iter().filter_map(slot).collect()
    }

    /// A connection that answers, with all locks of this process.
    async fn connected(
        &mut self,
        options: &PgConnectOptions,
    ) -> Result<&mut PgConnection, StoreError> {
        if let Some(mut connection) = self.connection.take() {
            let answered = tokio::time::timeout(SILENCE, connection.ping()).await;
            if matches!(answered, Ok(Ok(()))) {
                return Ok(self.connection.insert(connection));
            }
        }
        let made = async {
            let mut connection = options.connect().await?;
            for lock in &self.locks {
                // Where another process was faster, it has the run from now on.
                take(&mut connection, *lock).await?;
            }
            Ok::<_, StoreError>(connection)
        };
        let silent = |_| Err(sqlx::Error::from(io::Error::from(io::ErrorKind::TimedOut)).into());
        let connection = tokio::time::timeout(SILENCE, made).await.unwrap_or_else(silent)?;
        Ok(self.connection.insert(connection))
    }
}

/// A lane as a lock knows it.
fn number_of(lane: &str) -> i32 {
    let hash = Sha256Hex::of(lane.as_bytes()).to_string();
    let first = hash.get(..8).and_then(|first| u32::from_str_radix(first, 16).ok());
    first.unwrap_or_default().cast_signed()
}

/// Takes a slot of a lane that nobody has. A session may take a lock twice, so its own are left out;
/// with CASE, because conditions that are merely joined by AND are tried in any order.
async fn free_slot(
    connection: &mut PgConnection,
    lane: i32,
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
    .bind(lane)
    .bind(i32::try_from(width).unwrap_or(i32::MAX))
    .bind(ours)
    .bind(OTHERS_FIRST.as_secs_f64())
    .fetch_optional(connection)
    .await
    .map_err(StoreError::from)
}

/// Takes a lock; `false` where another session has it.
async fn take(connection: &mut PgConnection, lock: Lock) -> Result<bool, StoreError> {
    let taking = match lock {
        // The second number tells these locks from others of the same database.
        Lock::Run(run) => {
            sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1::text, 1))")
                .bind(run)
        }
        Lock::Slot { lane, slot } => {
            sqlx::query_scalar("SELECT pg_try_advisory_lock($1, $2)").bind(lane).bind(slot)
        }
    };
    taking.fetch_one(connection).await.map_err(StoreError::from)
}

async fn release(connection: &mut PgConnection, lock: Lock) -> Result<(), sqlx::Error> {
    let releasing = match lock {
        Lock::Run(run) => {
            sqlx::query("SELECT pg_advisory_unlock(hashtextextended($1::text, 1))").bind(run)
        }
        Lock::Slot { lane, slot } => {
            sqlx::query("SELECT pg_advisory_unlock($1, $2)").bind(lane).bind(slot)
        }
    };
    releasing.execute(connection).await.map(drop)
}

impl Drop for PgLock {
    fn drop(&mut self) {
        // Without a runtime the process is at its end, and the connection goes with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (lock, holder) = (self.lock, self.holder.clone());
        runtime.spawn(async move {
            let mut held = holder.0.lock().await;
            held.locks.remove(&lock);
            if let Some(connection) = held.connection.as_mut() {
                // Where the connection broke, the lock is gone already.
                let _ = tokio::time::timeout(SILENCE, release(connection, lock)).await;
            }
        });
    }
}

/// Which of these runs somebody drives at the moment.
pub(super) async fn driven(pool: &PgPool, ids: &[RunId]) -> Result<BTreeSet<RunId>, StoreError> {
    let keys = ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>()?;
    // The server shows the two halves of a lock's number apart.
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
