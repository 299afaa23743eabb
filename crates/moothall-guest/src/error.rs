//! Errors of the agent: [`GuestError`] ends it, [`GuestRefusal`] rejects one request.

use std::fmt::Display;
use std::io;

use moothall_core::guest::FrameFault;

/// Why the agent exits. Running programs are killed, and the host sees that the sandbox died.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// A message cannot be decoded or encoded.
    #[error("invalid frame")]
    Frame(#[from] FrameFault),
    /// A message or data arrived in the wrong state.
    #[error("unexpected {0}")]
    Unexpected(&'static str),
    /// The host closed the connection.
    #[error("the host closed the connection")]
    HostGone,
    /// The sandbox could not be set up.
    #[error("cannot {doing}")]
    Setup {
        /// The failed action, for messages.
        doing: String,
        /// The underlying error.
        source: io::Error,
    },
    /// A system call failed unexpectedly.
    #[error("system call failed")]
    Io(#[from] io::Error),
    /// Processes of the program survived being killed.
    #[error("processes of the program did not exit after they were killed")]
    KillTimeout,
    /// The command line is invalid.
    #[error("usage: moothall-guest serve [--workspace FOLDER]")]
    Usage,
}

impl From<rustix::io::Errno> for GuestError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl GuestError {
    /// Builds a [`Setup`](Self::Setup) error, for `map_err`.
    pub(crate) fn setup<E: Into<io::Error>>(doing: impl Display) -> impl FnOnce(E) -> Self {
        move |source| Self::Setup { doing: doing.to_string(), source: source.into() }
    }
}

/// Why a request was refused. The agent keeps running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestRefusal(String);

/// Maximum length of a reason.
const MAX_REASON_BYTES: usize = 500;

impl GuestRefusal {
    /// Creates a refusal. Long reasons are truncated.
    pub fn new(why: impl Display) -> Self {
        let mut why = why.to_string();
        why.truncate(why.floor_char_boundary(MAX_REASON_BYTES));
        Self(why)
    }

    /// For `map_err`: combines what was tried with the error.
    pub(crate) fn because<E: Display>(trying: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self::new(format_args!("cannot {trying}: {error}"))
    }

    /// The reason as text.
    pub fn why(self) -> String {
        self.0
    }
}
