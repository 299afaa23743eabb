//! Runs with their journal, events and artefacts, kept.
//!
//! A [`Store`] is what a run is resumed and followed from. It holds the results of effects and the
//! hashes of their requests, never the requests: what it needs is linear in what models wrote.
//!
//! [`SqliteStore`] keeps everything in one SQLite file, for a laptop or one server. Every
//! implementation runs the same contract test (`tests/it/contract.rs`).

#![warn(missing_docs)]

mod error;
mod sqlite;
mod store;

pub use crate::error::{JournalMismatch, StoreError};
pub use crate::sqlite::SqliteStore;
pub use crate::store::{
    Commit, JournalEntry, MAX_ARTIFACT_BYTES, MAX_TEXT_BYTES, NewRun, RunFilter, RunMatch, RunRow,
    RunState, Store, StoreFuture, StoredEvent, UnknownRunState, Wish,
};
