//! Status values of layers, rounds and paused runs.

use serde::{Deserialize, Serialize};

/// The status of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum StageStatus {
    /// The layer started.
    Running,
    /// The layer finished.
    Done,
}

/// Which side has answered in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RoundStatus {
    /// The critic has been called.
    CriticResponding,
    /// The critic has answered in every thread.
    CriticResponded,
    /// The decision makers have been called.
    DmResponding,
    /// Every decision maker has answered.
    DmResponded,
}

impl RoundStatus {
    /// The value as written in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CriticResponding => "critic_responding",
            Self::CriticResponded => "critic_responded",
            Self::DmResponding => "dm_responding",
            Self::DmResponded => "dm_responded",
        }
    }
}

/// What a paused run is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PauseReason {
    /// A higher budget.
    Budget,
    /// A person's decision.
    Person,
    /// A provider or other dependency that failed and may recover.
    Failure,
    /// A person's answer to a question of the workflow.
    Question,
}
