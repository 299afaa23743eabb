//! How much a credential may be used.

use serde::{Deserialize, Serialize};

use crate::ErrorCode;
use crate::MicroUsd;

/// How much may be done with one credential; what is absent has no limit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Runs that go on or stand still at one time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runs_at_once: Option<u32>,
    /// Money for runs that were started within a day.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usd_a_day: Option<MicroUsd>,
    /// Requests within a minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requests_a_minute: Option<u32>,
}

impl Limits {
    /// Concurrent runs of a new credential, unless its maker says otherwise.
    pub const USUAL_RUNS: u32 = 4;
    /// Requests a minute of a new credential, unless its maker says otherwise.
    pub const USUAL_REQUESTS: u32 = 600;

    /// These limits, but at most as much as another credential may do.
    #[must_use]
    pub fn within(self, most: Self) -> Self {
        fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            runs_at_once: lower(self.runs_at_once, most.runs_at_once),
            usd_a_day: lower(self.usd_a_day, most.usd_a_day),
            requests_a_minute: lower(self.requests_a_minute, most.requests_a_minute),
        }
    }
}

/// What is in use of [`Limits`] when another run is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    /// Runs that have not ended.
    pub runs: u32,
    /// What the runs of the last day have cost, or may still cost where they have not ended.
    pub usd: MicroUsd,
    /// Whether one of them may cost any amount.
    pub unbounded: bool,
}

/// Why another run may not begin now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// As many runs as may be have not ended.
    #[error("{running} runs have not ended, and the credential allows {allowed} at once")]
    Runs {
        /// How many there are.
        running: u32,
        /// How many there may be.
        allowed: u32,
    },
    /// It could cost more than is left of the day's money.
    #[error("the run may cost {wanted}, and {left} of the credential's {allowed} a day are left")]
    Spend {
        /// The most that the new run may cost.
        wanted: MicroUsd,
        /// What is left.
        left: MicroUsd,
        /// What there is in a day.
        allowed: MicroUsd,
    },
    /// Money is limited, and a run has no cap.
    #[error("the credential allows {allowed} a day, and a run has no cap on what it costs")]
    Uncapped {
        /// What there is in a day.
        allowed: MicroUsd,
    },
}

impl Excess {
    /// A word for programs.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Runs { .. } => ErrorCode::TooManyRuns,
            Self::Spend { .. } | Self::Uncapped { .. } => ErrorCode::SpendLimit,
        }
    }

    /// What a person can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Runs { .. } => "wait for a run to end, or cancel one",
            Self::Spend { .. } => {
                "ask for a smaller budget, or wait: a day counts from each run's start"
            }
            Self::Uncapped { .. } => "ask for the run with a budget in dollars",
        }
    }
}

/// Whether a run that may cost at most `cap` may begin beside what is in use. The worst case
/// counts, so that a limit cannot be exceeded by runs that are all within it when they begin.
pub fn admit(limits: Limits, in_use: InUse, cap: Option<MicroUsd>) -> Result<(), Excess> {
    if let Some(allowed) = limits.runs_at_once
        && in_use.runs >= allowed
    {
        return Err(Excess::Runs { running: in_use.runs, allowed });
    }
    if let Some(allowed) = limits.usd_a_day {
        let Some(wanted) = cap.filter(|_| !in_use.unbounded) else {
            return Err(Excess::Uncapped { allowed });
        };
        let left = allowed.saturating_sub(in_use.usd);
        if wanted > left {
            return Err(Excess::Spend { wanted, left, allowed });
        }
    }
    Ok(())
}

/// The pace of requests with one credential: a minute's worth at once at the most, and then evenly.
///
/// This is the generic cell rate algorithm: one number says when the next request would be due if
/// all had come evenly, and a request may come a minute before that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    due_us: u64,
}

const MINUTE_US: u64 = 60_000_000;

impl Pace {
    /// Counts a request at a time in microseconds of any clock that never goes back.
    pub fn take(&mut self, now_us: u64, a_minute: u32) -> Result<(), Wait> {
        let Some(apart_us) = MINUTE_US.checked_div(u64::from(a_minute)) else {
            return Err(Wait { seconds: 60 });
        };
        let due_us = self.due_us.max(now_us).saturating_add(apart_us);
        let early_us = due_us.saturating_sub(now_us);
        if early_us > MINUTE_US {
            return Err(Wait { seconds: (early_us - MINUTE_US).div_ceil(1_000_000) });
        }
        self.due_us = due_us;
        Ok(())
    }

    /// Whether nobody would notice if this were forgotten.
    pub fn is_idle(self, now_us: u64) -> bool {
        self.due_us <= now_us
    }
}

/// How long to wait before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; the next one is welcome in {seconds} s")]
pub struct Wait {
    /// Whole seconds, at least one.
    pub seconds: u64,
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
