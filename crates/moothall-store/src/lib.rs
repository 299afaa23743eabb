//! Runs with their journal, events and artefacts, kept; and whom they belong to.
//!
//! A [`Store`] is what a run is resumed and followed from. It holds the results of effects and the
//! hashes of their requests, never the requests: what it needs is linear in what models wrote.
//!
//! [`Accounts`] is where a server finds out who calls: teams, tokens, sessions.
//!
//! [`SqliteStore`] keeps everything in one SQLite file, for a laptop or one server; [`PgStore`] in a
//! PostgreSQL database, for many machines. Every implementation runs the same contract tests
//! (`tests/it/contract.rs`, `accounts.rs`, `admission.rs`, `model.rs`).

#![warn(missing_docs)]

mod accounts;
mod accounts_sql;
mod admission;
mod error;
mod postgres;
mod prepared;
mod requests;
mod rows;
mod rules;
mod sqlite;
mod store;
mod wave;

pub use crate::accounts::{
    Accounts, Credential, LoginCode, MAX_LABEL_BYTES, NewSession, NewToken, SessionRow, TeamRow,
    TokenRow, random_token_id,
};
pub use crate::error::{JournalMismatch, StoreError};
pub use crate::postgres::{InvalidPgAddress, PgAddress, PgLock, PgStore};
pub use crate::sqlite::SqliteStore;
pub use crate::store::{
    Admission, Commit, JournalEntry, MAX_ARTIFACT_BYTES, MAX_REQUEST_KEY_BYTES, MAX_TEXT_BYTES,
    NewRun, Once, RunFilter, RunMatch, RunRow, RunState, Store, StoreFuture, StoredEvent, Teams,
    Terms, UnknownRunState, Wish,
};
pub use crate::wave::{Beginning, Begun};

/// Milliseconds since 1970, as rows have them.
pub fn now_ms() -> u64 {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
