//! Why a store did not do what it was asked.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use moothall_core::access::{TeamName, TokenId};
use moothall_core::{EffectId, RunId, Sha256Hex};
use sqlx::error::DatabaseError as _;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use crate::RunState;

/// Why the store refused or broke. Whatever the reason, nothing of the request was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A run with this id is there already.
    #[error("run {0} exists already")]
    RunExists(RunId),
    /// There is no such run, or it was deleted.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// A team with this name is there already.
    #[error("team `{0}` exists already")]
    TeamExists(TeamName),
    /// There is no such team.
    #[error("there is no team `{0}`")]
    UnknownTeam(TeamName),
    /// A token with this id or secret is there already.
    #[error("token {0} exists already")]
    TokenExists(TokenId),
    /// There is no such token.
    #[error("there is no token {0}")]
    UnknownToken(TokenId),
    /// The run is over, and what was offered is not a repetition of what is stored.
    #[error("run {run_id} is {state}; nothing can follow")]
    RunEnded {
        /// The run.
        run_id: RunId,
        /// How it ended.
        state: RunState,
    },
    /// The journal holds something else under this effect id.
    #[error("the journal of run {run_id} disagrees about effect `{effect_id}`: {mismatch}")]
    JournalConflict {
        /// The run.
        run_id: RunId,
        /// The effect.
        effect_id: EffectId,
        /// In what they differ.
        mismatch: JournalMismatch,
    },
    /// The parts of the request contradict each other or cannot be stored; a caller's mistake.
    #[error("the request does not hold together: {0}")]
    Misfit(&'static str),
    /// A single value is larger than a store takes.
    #[error("{what} has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Which value.
        what: &'static str,
        /// Its size as it would be stored.
        bytes: usize,
        /// What a store takes.
        limit: usize,
    },
    /// The server of the database does not answer, or went away in the middle of the request.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// The server or the database would not keep what it promises.
    #[error("the database {place} cannot hold runs: {problem}")]
    Unsuitable {
        /// Where it is, as `host:port/database`.
        place: String,
        /// Why.
        problem: &'static str,
    },
    /// Others wrote for longer than we wait.
    #[error("the store is busy")]
    Busy(#[source] sqlx::Error),
    /// A newer program wrote the file, or the tables in the database.
    #[error(
        "`{}` has format {found}, this program reads up to {known}: use a newer moothall",
        path.display()
    )]
    NewerFormat {
        /// The file, or where the database is.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this build knows.
        known: i64,
    },
    /// The file is something else.
    #[error("`{}` is not a database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database, but not one of ours; or another program's tables have the place of
    /// ours. Nothing was touched.
    #[error("`{}` is a database of another program", path.display())]
    ForeignDatabase {
        /// The file, or where the database is.
        path: PathBuf,
    },
    /// A stored value is not what this build understands.
    #[error("cannot understand the stored {what}")]
    Unreadable {
        /// Which value.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file or its folder cannot be made.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Anything else the database says: disk full, damaged file, lost connection.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same request may succeed if it is simply made again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Unreachable(_))
    }

    /// Whether the request would be refused however often it is made, and whatever is done about the
    /// store meanwhile. A disk that is full, a store that is being closed and a server that is gone
    /// are not: whoever must not lose a run waits until somebody has cured them.
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

/// In what a journal entry differs from the one that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalMismatch {
    /// Another question was asked under the same id.
    #[error("stored is the answer to request {stored}, offered the answer to {offered}")]
    Request {
        /// The hash in the journal.
        stored: Sha256Hex,
        /// The hash of the refused entry.
        offered: Sha256Hex,
    },
    /// The same question, another answer.
    #[error("both answer the same request, but the results differ")]
    Result,
}

/// Tells apart what may pass by itself.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        /// SQLite's result code for every kind of busy, without its extension.
        const SQLITE_BUSY: i32 = 5;
        /// Waited for a lock, or for a statement, longer than we do; a deadlock; too many connections.
        const BUSY: [&str; 5] = ["55P03", "57014", "40001", "40P01", "53300"];
        /// The server ends, was ended, or is starting; or it stands by while another one takes over.
        const AWAY: [&str; 5] = ["57P01", "57P02", "57P03", "25006", "08006"];
        /// A text with the character NUL, or one that is too long for an index.
        const UNFIT: [&str; 2] = ["22021", "54000"];
        match (sqlite_code(&error), postgres_code(&error), &error) {
            (Some(SQLITE_BUSY), ..) | (.., sqlx::Error::PoolTimedOut) => Self::Busy(error),
            (_, Some(code), _) if BUSY.contains(&code) => Self::Busy(error),
            (_, Some(code), _) if AWAY.contains(&code) => Self::Unreachable(error),
            (_, Some(code), _) if UNFIT.contains(&code) => {
                Self::Misfit("a text holds a character NUL, or is too long to be found again")
            }
            // A certificate that nobody vouches for does not become better.
            (.., sqlx::Error::Io(cause)) if cause.kind() != io::ErrorKind::InvalidData => {
                Self::Unreachable(error)
            }
            _ => Self::Database(error),
        }
    }
}

/// SQLite's result code without its extension.
pub(crate) fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let code: i32 = error.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn postgres_code(error: &sqlx::Error) -> Option<&str> {
    Some(error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?.code())
}
