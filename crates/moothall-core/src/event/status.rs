//! Where a layer, a round or a paused run stands.

use serde::{Deserialize, Serialize};

/// Where a layer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LayerStatus {
    /// It began.
    Running,
    /// It ended.
    Done,
}

/// Who has spoken in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RoundStatus {
    /// The critic is asked.
    CriticResponding,
    /// The critic, in every thread.
    CriticResponded,
    /// The decision makers are asked.
    DmResponding,
    /// Every decision maker.
    DmResponded,
}

impl RoundStatus {
    /// The word as it stands in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CriticResponding => "critic_responding",
            Self::CriticResponded => "critic_responded",
            Self::DmResponding => "dm_responding",
            Self::DmResponded => "dm_responded",
        }
    }
}

/// What a paused run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PauseReason {
    /// More money or tokens.
    Budget,
    /// A person's decision.
    Person,
    /// A provider or another part that may come back.
    Failure,
    /// A person's answer to a question of the workflow.
    Question,
}
