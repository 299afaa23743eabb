//! Measured errors of sets of models: the content of `judges.toml`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Sha256Hex;
use crate::verdict::{AllowanceSource, NoiseAllowances};

/// Measurements of several sets of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeFile {
    /// One entry for each set of models.
    pub measurement: Vec<JudgeMeasurement>,
}

/// Errors of a set of models, in thousandths of the standard deviation of the true values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeMeasurement {
    /// The models by name.
    pub models: Vec<String>,
    /// The error that all models share (κ).
    pub shared_error: u32,
    /// The taste of a single model (μ).
    pub single_model: u32,
    /// The luck of a single debate (δ).
    pub single_debate: u32,
    /// The benchmark that it was measured with.
    pub set: String,
    /// The hash of the benchmark.
    pub set_sha256: String,
    /// Number of companies.
    pub companies: u32,
}

impl JudgeFile {
    /// The largest error that a file may state, in thousandths. A larger one would mean that scores
    /// say nothing.
    pub const MAX_ERROR: u32 = 9_999;

    /// Whether all values are in range.
    pub fn is_valid(&self) -> bool {
        let is_fine = |one: &JudgeMeasurement| {
            let values = [one.shared_error, one.single_model, one.single_debate];
            !one.models.is_empty() && values.iter().all(|value| *value <= Self::MAX_ERROR)
        };
        self.measurement.iter().all(is_fine)
    }

    /// Adds a measurement, or replaces the one of the same models.
    pub fn replace(&mut self, new: JudgeMeasurement) {
        self.measurement.retain(|one| !is_same(&one.models, &new.models));
        self.measurement.push(new);
    }

    /// The allowances for exactly these models, with the hash of the file that they come from.
    pub fn allowances(&self, models: &[String], file: Sha256Hex) -> Option<NoiseAllowances> {
        let found = self.measurement.iter().find(|one| is_same(&one.models, models))?;
        Some(NoiseAllowances {
            shared_error: found.shared_error,
            single_model: found.single_model,
            single_debate: found.single_debate,
            source: AllowanceSource::Measured(file),
        })
    }
}

/// Order and repetition do not matter.
fn is_same(one: &[String], other: &[String]) -> bool {
    one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
}

#[cfg(test)]
#[path = "judge_file_tests.rs"]
mod tests;
