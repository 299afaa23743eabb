//! Errors that prevent a program from running. A program that fails is not an error but an
//! [`SandboxExecution`](moothall_core::sandbox::SandboxExecution).

use std::time::Duration;

use moothall_core::guest::FrameFault;
use moothall_core::sandbox::{IsolationClass, SandboxFailure, SandboxFailureKind};

/// A failure on the host's side of the sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A required program is not installed. Retrying does not help.
    #[error("cannot find `{program}`")]
    Missing { program: String },
    /// The host does not run Linux.
    #[error("{what} needs Linux")]
    NeedsLinux { what: String },
    /// No engine on this host provides the required isolation.
    #[error("no usable sandbox on this host (minimum isolation class: {minimum}): {found}")]
    TooWeak {
        /// The required isolation class.
        minimum: IsolationClass,
        /// What the available engines provide.
        found: String,
    },
    /// The kernel has Landlock, but it is not enabled.
    #[error("Landlock is disabled on this kernel")]
    LandlockDisabled,
    /// The kernel has no Landlock (ABI 0), or an old version of it.
    #[error("the kernel supports Landlock ABI {found}, but {needed} is required")]
    LandlockTooOld { found: u32, needed: u32 },
    /// The image is missing or broken.
    #[error("image `{image}`: {problem}")]
    Image { image: String, problem: String },
    /// The request cannot be run in any sandbox.
    #[error("{0}")]
    Request(String),
    /// A sandbox did not become ready in time.
    #[error("{what} was not ready after {waited:?}")]
    NotReady { what: &'static str, waited: Duration },
    #[error("{engine} cannot start a sandbox: {problem}")]
    Start {
        engine: String,
        /// What the engine reported.
        problem: String,
    },
    /// The agent violated the protocol.
    #[error("the guest agent violated the protocol: {0}")]
    Protocol(String),
    /// The connection to the agent broke.
    #[error("lost contact with the guest agent")]
    Lost(#[source] std::io::Error),
    /// An operation on the host failed.
    #[error("{what}")]
    Host {
        /// The failed operation, for messages.
        what: String,
        #[source]
        source: std::io::Error,
    },
}

impl SandboxError {
    /// Whether the same request may succeed in a fresh sandbox.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::NeedsLinux { .. }
            | Self::TooWeak { .. }
            | Self::LandlockDisabled
            | Self::LandlockTooOld { .. }
            | Self::Image { .. }
            | Self::Request(_) => false,
            Self::NotReady { .. }
            | Self::Start { .. }
            | Self::Protocol(_)
            | Self::Lost(_)
            | Self::Host { .. } => true,
        }
    }

    /// Converts the error to the failure that workflows record.
    pub fn failure(&self) -> SandboxFailure {
        let kind = match self {
            Self::Missing { .. }
            | Self::NeedsLinux { .. }
            | Self::TooWeak { .. }
            | Self::LandlockDisabled
            | Self::LandlockTooOld { .. } => SandboxFailureKind::NoEngine,
            Self::Image { .. } => SandboxFailureKind::Image,
            Self::Request(_) => SandboxFailureKind::Request,
            Self::NotReady { .. }
            | Self::Start { .. }
            | Self::Protocol(_)
            | Self::Lost(_)
            | Self::Host { .. } => SandboxFailureKind::Lost,
        };
        let mut detail = self.to_string();
        if let Some(source) = std::error::Error::source(self) {
            detail = format!("{detail}: {source}");
        }
        SandboxFailure { kind, detail }
    }

    /// Builds a [`Host`](Self::Host) error, for `map_err`.
    pub(crate) fn host(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Host { what, source }
    }
}

impl From<FrameFault> for SandboxError {
    fn from(fault: FrameFault) -> Self {
        Self::Protocol(fault.to_string())
    }
}
