//! Usage limits of a credential.

use serde::{Deserialize, Serialize};

use crate::ErrorCode;
use crate::MicroUsd;

/// Limits of one credential. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialLimits {
    /// Concurrent runs, including paused ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runs_at_once: Option<u32>,
    /// Total cost of the runs started within a day.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usd_a_day: Option<MicroUsd>,
    /// Requests per minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requests_a_minute: Option<u32>,
}

impl CredentialLimits {
    /// Default limit of concurrent runs.
    pub const DEFAULT_RUNS: u32 = 4;
    /// Default limit of requests per minute.
    pub const DEFAULT_REQUESTS: u32 = 600;

    /// The lower of both limits in each field, so a credential cannot grant more than its
    /// creator has.
    #[must_use]
    pub fn capped_by(self, most: Self) -> Self {
        fn min_limit<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            runs_at_once: min_limit(self.runs_at_once, most.runs_at_once),
            usd_a_day: min_limit(self.usd_a_day, most.usd_a_day),
            requests_a_minute: min_limit(self.requests_a_minute, most.requests_a_minute),
        }
    }
}

/// Current usage, compared with [`CredentialLimits`] when a run is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CredentialUsage {
    /// Unfinished runs.
    pub runs: u32,
    /// Cost of the last day's runs. Unfinished runs count with their maximum cost.
    pub usd: MicroUsd,
    /// Whether one of them has no spending cap.
    pub unbounded: bool,
}

/// Why a run may not start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunLimitError {
    /// The limit of concurrent runs is reached.
    #[error("{running} runs are in progress, and the credential allows {allowed} at a time")]
    Runs {
        /// Number of unfinished runs.
        running: u32,
        /// The limit.
        allowed: u32,
    },
    /// The run could exceed the daily spending limit.
    #[error(
        "the run may cost {wanted}, but only {left} of the credential's {allowed} per day is left"
    )]
    Spend {
        /// Maximum cost of the new run.
        wanted: MicroUsd,
        /// What is left of the daily limit.
        left: MicroUsd,
        /// The daily limit.
        allowed: MicroUsd,
    },
    /// There is a daily spending limit, and a run has no spending cap.
    #[error("the credential allows {allowed} per day, so every run needs a budget in dollars")]
    Uncapped {
        /// The daily limit.
        allowed: MicroUsd,
    },
}

impl RunLimitError {
    /// The machine-readable error code.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Runs { .. } => ErrorCode::TooManyRuns,
            Self::Spend { .. } | Self::Uncapped { .. } => ErrorCode::SpendLimit,
        }
    }

    /// How to fix it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Runs { .. } => "wait for a run to finish, or cancel one",
            Self::Spend { .. } => {
                "set a smaller budget, or wait: each run counts for one day from its start"
            }
            Self::Uncapped { .. } => {
                "start the run with a budget in dollars; if another run has none, wait until it ends"
            }
        }
    }
}

/// Checks whether a run that costs at most `cap` may start. Uses the maximum cost of unfinished
/// runs, so that concurrent runs cannot exceed the limit together.
pub fn admit(
    limits: CredentialLimits,
    in_use: CredentialUsage,
    cap: Option<MicroUsd>,
) -> Result<(), RunLimitError> {
    if let Some(allowed) = limits.runs_at_once
        && in_use.runs >= allowed
    {
        return Err(RunLimitError::Runs { running: in_use.runs, allowed });
    }
    if let Some(allowed) = limits.usd_a_day {
        let Some(wanted) = cap.filter(|_| !in_use.unbounded) else {
            return Err(RunLimitError::Uncapped { allowed });
        };
        let left = allowed.saturating_sub(in_use.usd);
        if wanted > left {
            return Err(RunLimitError::Spend { wanted, left, allowed });
        }
    }
    Ok(())
}

/// Rate limiter for the requests of one credential: bursts of up to one minute's quota, then an
/// even rate.
///
/// This is the generic cell rate algorithm (GCRA). It stores the time at which the next request is
/// due at an even rate; a request may arrive up to one minute earlier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CredentialRateLimiter {
    due_us: u64,
}

const MINUTE_US: u64 = 60_000_000;

impl CredentialRateLimiter {
    /// Counts a request. `now_us` is in microseconds of any monotonic clock.
    pub fn take(&mut self, now_us: u64, a_minute: u32) -> Result<(), RateLimitError> {
        let Some(apart_us) = MINUTE_US.checked_div(u64::from(a_minute)) else {
            return Err(RateLimitError { seconds: 60 });
        };
        let due_us = self.due_us.max(now_us).saturating_add(apart_us);
        let early_us = due_us.saturating_sub(now_us);
        if early_us > MINUTE_US {
            return Err(RateLimitError { seconds: (early_us - MINUTE_US).div_ceil(1_000_000) });
        }
        self.due_us = due_us;
        Ok(())
    }

    /// Whether this state equals a fresh one, so it can be dropped.
    pub fn is_idle(self, now_us: u64) -> bool {
        self.due_us <= now_us
    }
}

/// Rate limit exceeded; how long to wait before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; retry in {seconds} s")]
pub struct RateLimitError {
    /// Whole seconds, at least one.
    pub seconds: u64,
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
