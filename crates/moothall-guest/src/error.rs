//! Why the agent gives up, and why it does not do what it was asked.

use std::fmt::Display;
use std::io;

use moothall_core::guest::FrameFault;

/// Why the agent ends. Whatever runs is stopped; the host sees that the sandbox died.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// The host cannot be understood, or an answer cannot be sent.
    #[error("the conversation broke")]
    Frame(#[from] FrameFault),
    /// Something came where it does not belong.
    #[error("{0} came where it does not belong")]
    OutOfPlace(&'static str),
    /// The host is gone.
    #[error("the host is gone")]
    HostGone,
    /// The sandbox is not what it must be.
    #[error("cannot {doing}")]
    Setup {
        /// What was tried.
        doing: String,
        /// Why it did not work.
        source: io::Error,
    },
    /// A system call that must work did not.
    #[error("the system failed")]
    Io(#[from] io::Error),
    /// Processes that cannot be killed.
    #[error("processes of the program do not die")]
    Undead,
    /// The command line makes no sense.
    #[error("usage: moothall-guest serve [--workspace FOLDER]")]
    Usage,
}

impl From<rustix::io::Errno> for GuestError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl GuestError {
    /// For `map_err` while the sandbox is set up.
    pub(crate) fn setup<E: Into<io::Error>>(doing: impl Display) -> impl FnOnce(E) -> Self {
        move |source| Self::Setup { doing: doing.to_string(), source: source.into() }
    }
}

/// Why something was not done. The agent goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(String);

/// The longest reason that is told.
const WHY_BYTES: usize = 500;

impl Refusal {
    /// A reason in words.
    pub fn new(why: impl Display) -> Self {
        let mut why = why.to_string();
        why.truncate(why.floor_char_boundary(WHY_BYTES));
        Self(why)
    }

    /// For `map_err`: what was tried, and what the system said.
    pub(crate) fn because<E: Display>(trying: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self::new(format_args!("cannot {trying}: {error}"))
    }

    /// The words.
    pub fn why(self) -> String {
        self.0
    }
}
