//! Why nothing could be run. A program that fails is not an error: that is an
//! [`Execution`](moothall_core::sandbox::Execution).

use std::time::Duration;

use moothall_core::guest::FrameFault;
use moothall_core::sandbox::{IsolationClass, SandboxFailure, SandboxFailureKind};

/// What broke on our side of the wall.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The host lacks a program. Fix the host; a retry cannot help.
    #[error("cannot find `{program}`")]
    Missing {
        /// What to install.
        program: String,
    },
    /// The host is no Linux.
    #[error("{what} needs Linux")]
    NeedsLinux {
        /// What was asked for.
        what: String,
    },
    /// No engine of this host is strong enough.
    #[error("no sandbox on this host is at least {minimum}: {found}")]
    TooWeak {
        /// What was asked for.
        minimum: IsolationClass,
        /// What there is.
        found: String,
    },
    /// The image is missing or broken.
    #[error("image `{image}`: {problem}")]
    Image {
        /// Its name.
        image: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The request cannot be carried out, in this sandbox or any other.
    #[error("the program cannot be run: {0}")]
    Request(String),
    /// A sandbox did not come up in time.
    #[error("{what} was not ready after {waited:?}")]
    NotReady {
        /// What was waited for.
        what: &'static str,
        /// How long.
        waited: Duration,
    },
    /// A sandbox could not be started.
    #[error("{engine} cannot start a sandbox: {problem}")]
    Start {
        /// Which engine.
        engine: String,
        /// What it said.
        problem: String,
    },
    /// The agent inside said something it may not say.
    #[error("the guest does not keep to the protocol: {0}")]
    Protocol(String),
    /// The way to the agent broke.
    #[error("lost contact with the guest")]
    Lost(#[source] std::io::Error),
    /// Something of the host failed.
    #[error("{what}")]
    Host {
        /// What was tried.
        what: String,
        /// What came of it.
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
            | Self::Image { .. }
            | Self::Request(_) => false,
            Self::NotReady { .. }
            | Self::Start { .. }
            | Self::Protocol(_)
            | Self::Lost(_)
            | Self::Host { .. } => true,
        }
    }

    /// The failure as a workflow is told of it.
    pub fn failure(&self) -> SandboxFailure {
        let kind = match self {
            Self::Missing { .. } | Self::NeedsLinux { .. } | Self::TooWeak { .. } => {
                SandboxFailureKind::NoEngine
            }
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

    /// Something of the host failed.
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
