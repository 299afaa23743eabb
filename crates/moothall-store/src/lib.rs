//! Stores runs with their journal, events and artifacts, and the teams that own them.
//!
//! A [`Store`] is what runs are resumed and followed from. It holds the results of effects and the
//! hashes of their requests, never the requests themselves, so its size is linear in the model
//! output.
//!
//! [`AccountStore`] holds teams, tokens and sessions, which a server uses to authenticate callers.
//!
//! [`SqliteStore`] keeps everything in one SQLite file, for a laptop or one server; [`PgStore`]
//! uses a PostgreSQL database, for several machines. Every implementation runs the same contract
//! tests (`tests/it/contract.rs`, `accounts.rs`, `admission.rs`, `model.rs`).

#![warn(missing_docs)]

mod accounts;
mod accounts_sql;
mod admission;
mod batch;
mod common_methods;
mod error;
mod postgres;
mod prepared_commit;
mod rows;
mod sqlite;
mod store;
mod validation;

pub use crate::accounts::{
    AccountStore, Credential, LoginCode, MAX_LABEL_BYTES, NewSession, NewToken, SessionRow,
    TeamRow, TokenRow, random_token_id,
};
pub use crate::batch::{BatchAdmission, BatchStart};
pub use crate::error::{JournalMismatch, StoreError};
pub use crate::postgres::{InvalidPgAddress, PgAddress, PgLock, PgStore};
pub use crate::sqlite::SqliteStore;
pub use crate::store::{
    AdmissionDecision, AdmissionTerms, ControlRequest, IdempotencyKey, JournalEntry,
    MAX_ARTIFACT_BYTES, MAX_REQUEST_KEY_BYTES, MAX_TEXT_BYTES, NewRun, RunCommit, RunFilter,
    RunMatch, RunOrder, RunPage, RunQuery, RunRow, RunState, Store, StoreFuture, StoredEvent,
    TeamFilter, UnknownRunState,
};

/// Current time in milliseconds since 1970, as stored in rows.
pub fn now_ms() -> u64 {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
