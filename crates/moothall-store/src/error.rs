//! Store errors.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use moothall_core::access::{TeamName, TokenId};
use moothall_core::{EffectId, RunId, Sha256Hex};
use sqlx::error::DatabaseError as _;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use crate::RunState;

/// Why a store operation failed. In every case nothing of the request was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A run with this id already exists.
    #[error("run {0} already exists")]
    RunExists(RunId),
    /// The run does not exist or was deleted.
    #[error("run {0} not found")]
    UnknownRun(RunId),
    /// A team with this name already exists.
    #[error("team `{0}` already exists")]
    TeamExists(TeamName),
    /// The team does not exist.
    #[error("team `{0}` not found")]
    UnknownTeam(TeamName),
    /// A token with this id or secret already exists.
    #[error("token {0} already exists")]
    TokenExists(TokenId),
    /// The token does not exist.
    #[error("token {0} not found")]
    UnknownToken(TokenId),
    /// The run has ended, and the request does not merely repeat what is stored.
    #[error("run {run_id} is already {state}")]
    RunEnded {
        /// The run.
        run_id: RunId,
        /// Its final state.
        state: RunState,
    },
    /// The journal has a different entry for this effect id.
    #[error("journal conflict in run {run_id} for effect `{effect_id}`: {mismatch}")]
    JournalConflict {
        /// The run.
        run_id: RunId,
        /// The effect.
        effect_id: EffectId,
        /// How the entries differ.
        mismatch: JournalMismatch,
    },
    /// The request is inconsistent or cannot be stored; a bug in the caller.
    #[error("invalid store request: {0}")]
    Misfit(&'static str),
    /// A value exceeds the size limit.
    #[error("{what} is too large: {bytes} bytes (limit: {limit})")]
    TooLarge {
        /// Which value.
        what: &'static str,
        /// Its size as stored.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The database server does not respond, or the connection was lost during the request.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// The server or database does not meet the durability requirements.
    #[error("database {place} cannot be used: {problem}")]
    Unsuitable {
        /// Location as `host:port/database`.
        place: String,
        /// The reason.
        problem: &'static str,
    },
    /// Timed out waiting for other writers.
    #[error("the store is busy")]
    Busy(#[source] sqlx::Error),
    /// The file or the tables were written by a newer version.
    #[error(
        "`{}` has format {found}, but this version supports up to {known}: upgrade moothall",
        path.display()
    )]
    NewerFormat {
        /// The file, or the location of the database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this build supports.
        known: i64,
    },
    /// The file is not a database.
    #[error("`{}` is not a database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database belongs to another program, or another program's tables use our names. Nothing
    /// was changed.
    #[error("`{}` is a database of another program", path.display())]
    ForeignDatabase {
        /// The file, or the location of the database.
        path: PathBuf,
    },
    /// This build cannot read a stored value.
    #[error("cannot read the stored {what}")]
    Unreadable {
        /// Which value.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file or its directory cannot be created.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Any other database error, such as a full disk or a damaged file.
    #[error("database error")]
    Database(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether repeating the same request may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Unreachable(_))
    }

    /// Whether the request will always be rejected, whatever is done about the store. A full disk,
    /// a closing store and a missing server are not final: a caller that must not lose a run waits
    /// until they are fixed.
    pub fn is_final(&self) -> bool {
        match self {
            Self::RunExists(_)
            | Self::UnknownRun(_)
            | Self::TeamExists(_)
            | Self::UnknownTeam(_)
            | Self::TokenExists(_)
            | Self::UnknownToken(_)
            | Self::RunEnded { .. }
            | Self::JournalConflict { .. }
            | Self::Misfit(_)
            | Self::TooLarge { .. }
            | Self::Unreadable { .. } => true,
            Self::Busy(_)
            | Self::Unreachable(_)
            | Self::Unsuitable { .. }
            | Self::NewerFormat { .. }
            | Self::NotADatabase { .. }
            | Self::ForeignDatabase { .. }
            | Self::Io(_)
            | Self::Database(_) => false,
        }
    }

    pub(crate) fn unreadable(
        what: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Unreadable { what, source: source.into() }
    }
}

/// How a journal entry differs from the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalMismatch {
    /// The requests under the same id differ.
    #[error("the journal has request {stored}, the new entry has {offered}")]
    Request {
        /// The request hash in the journal.
        stored: Sha256Hex,
        /// The request hash of the rejected entry.
        offered: Sha256Hex,
    },
    /// The requests are the same, but the results differ.
    #[error("the requests are the same, but the results differ")]
    Result,
}

/// Separates transient errors from permanent ones.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        /// SQLite's primary result code for all kinds of busy.
        const SQLITE_BUSY: i32 = 5;
        /// Lock timeout, statement timeout, serialization failure, deadlock, too many connections.
        const BUSY_CODES: [&str; 5] = ["55P03", "57014", "40001", "40P01", "53300"];
        /// The server is shutting down, crashed or starting, or is a standby during a failover.
        const UNAVAILABLE_CODES: [&str; 5] = ["57P01", "57P02", "57P03", "25006", "08006"];
        /// A text that contains NUL or is too long for an index.
        const INVALID_VALUE_CODES: [&str; 2] = ["22021", "54000"];
        match (sqlite_code(&error), postgres_code(&error), &error) {
            (Some(SQLITE_BUSY), ..) | (.., sqlx::Error::PoolTimedOut) => Self::Busy(error),
            (_, Some(code), _) if BUSY_CODES.contains(&code) => Self::Busy(error),
            (_, Some(code), _) if UNAVAILABLE_CODES.contains(&code) => Self::Unreachable(error),
            (_, Some(code), _) if INVALID_VALUE_CODES.contains(&code) => {
                Self::Misfit("a text contains a NUL character or is too long to index")
            }
            // An invalid certificate is not a transient error.
            (.., sqlx::Error::Io(cause)) if cause.kind() != io::ErrorKind::InvalidData => {
                Self::Unreachable(error)
            }
            _ => Self::Database(error),
        }
    }
}

/// SQLite's primary result code, without the extended bits.
pub(crate) fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let code: i32 = error.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn postgres_code(error: &sqlx::Error) -> Option<&str> {
    Some(error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?.code())
}
