//! How independent a panel is of itself and of the debates.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::card_table::PanelJudge;

/// From this number on, models that take no part in the debates count as independent.
const MIN_MODELS: usize = 3;

/// How independent a panel is. Shown wherever its verdict is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PanelLabel {
    /// At least three models, none of which speaks in the debates.
    Independent,
    /// Two models, or one of several speaks in the debates.
    Mixed,
    /// One model; intervals include an allowance for its taste.
    SingleModel,
}

impl PanelLabel {
    /// The label of a panel, given the models that speak in the debates.
    pub fn of(judges: &[PanelJudge], debating: &BTreeSet<String>) -> Self {
        let models: BTreeSet<&String> = judges.iter().map(|judge| &judge.model).collect();
        if models.len() <= 1 {
            Self::SingleModel
        } else if models.len() < MIN_MODELS || models.iter().any(|one| debating.contains(*one)) {
            Self::Mixed
        } else {
            Self::Independent
        }
    }

    /// The label as users see it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Mixed => "mixed",
            Self::SingleModel => "single model",
        }
    }
}

#[cfg(test)]
#[path = "panel_label_tests.rs"]
mod tests;
