//! Who drives a run, on whatever machine: a lock of a session, which the server frees when the
//! process or its machine dies.
//!
//! All runs of a process are held by one connection: servers have few. Should the connection break,
//! another process may take the runs over, and the journal refuses whoever comes second with another
//! answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use moothall_core::RunId;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::{database_error, key};
use crate::{StoreError, rows};

/// The connection that holds the locks, once there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Holder(Arc<Mutex<Option<PgConnection>>>);

/// The right to drive one run, as long as this value lives and its process has its connection.
#[derive(Debug)]
pub struct PgDriving {
    run: Uuid,
    holder: Holder,
}

impl Holder {
    /// Takes the right to drive a run; nothing where another process has it.
    pub(super) async fn drive(
        &self,
        options: &PgConnectOptions,
        id: &RunId,
    ) -> Result<Option<PgDriving>, StoreError> {
        let run = key(id)?;
        let mut held = self.0.lock().await;
        if let Some(connection) = held.as_mut()
            && connection.ping().await.is_err()
        {
            *held = None;
        }
        let connection = match held.as_mut() {
            Some(connection) => connection,
            None => held.insert(options.connect().await.map_err(database_error)?),
        };
        // The second number tells these locks from others of the same database.
        let taken: bool =
            sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1::text, 1))")
                .bind(run)
                .fetch_one(connection)
                .await
                .map_err(database_error)?;
        Ok(taken.then(|| PgDriving { run, holder: self.clone() }))
    }
}

impl Drop for PgDriving {
    fn drop(&mut self) {
        // Without a runtime the process is at its end, and the connection goes with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (run, holder) = (self.run, self.holder.clone());
        runtime.spawn(async move {
            if let Some(connection) = holder.0.lock().await.as_mut() {
                // Where the connection broke, the lock is gone already.
                let _ = sqlx::query("SELECT pg_advisory_unlock(hashtextextended($1::text, 1))")
                    .bind(run)
                    .execute(connection)
                    .await;
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
    .await
    .map_err(database_error)?;
    found.iter().map(|id| rows::run_id(id)).collect()
}
