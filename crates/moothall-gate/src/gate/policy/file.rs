//! The policy file format.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::check::CheckSection;
use super::{
    ElicitationMode, LayerRank, PolicyDate, PolicyException, PolicyLayer, PolicyLayerName,
    PolicyLimits, PreviewMode, ReviewChannel, duration_ms,
};
use crate::Sha256Hex;
use crate::gate::rule::{GateAction, GateRule};
use crate::model::ModelName;

/// Longer policies are refused.
const MAX_BYTES: usize = 256 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PolicyFile {
    pub(crate) version: Option<u32>,
    pub(crate) defaults: DefaultsSection,
    pub(crate) limits: LimitsSection,
    pub(crate) paths: PathsSection,
    pub(crate) rules: BTreeMap<String, GateAction>,
    pub(crate) check: Vec<CheckSection>,
    pub(crate) exception: Vec<ExceptionSection>,
    pub(crate) review: ReviewSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DefaultsSection {
    pub(crate) unlisted_rule: Option<GateAction>,
    pub(crate) on_error: Option<GateAction>,
    pub(crate) preview: Option<PreviewMode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsSection {
    max_file_bytes: Option<usize>,
    max_changed_lines: Option<usize>,
    max_deletion_ratio: Option<f64>,
    min_lines_for_ratio: Option<usize>,
    max_line_bytes: Option<usize>,
    max_open_drafts_per_task: Option<usize>,
    max_files_per_changeset: Option<usize>,
    max_rejections: Option<u32>,
    draft_ttl: Option<String>,
    escalation_ttl: Option<String>,
    gate_timeout: Option<String>,
    max_looks_per_hour: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PathsSection {
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Option<Vec<String>>,
    pub(crate) protect: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExceptionSection {
    rule: String,
    path: String,
    #[serde(default)]
    value_sha256: Option<Sha256Hex>,
    reason: String,
    owner: String,
    expires: toml::value::Datetime,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReviewSection {
    pub(crate) approvers: Option<Vec<String>>,
    pub(crate) author_may_approve: Option<bool>,
    pub(crate) channels: Option<Vec<ReviewChannel>>,
    pub(crate) elicitation: Option<ElicitationMode>,
    pub(crate) model: Option<ModelName>,
}

/// A task contract has other keys for other tools; only `gate` is read.
#[derive(Debug, Default, Deserialize)]
struct TaskContract {
    #[serde(default)]
    gate: PolicyFile,
}

impl PolicyFile {
    pub(crate) fn read(layer: &PolicyLayer) -> Result<Self, String> {
        if layer.text.len() > MAX_BYTES {
            return Err(format!("larger than {MAX_BYTES} bytes"));
        }
        let file = match layer.name {
            PolicyLayerName::Task => {
                // Serde would also accept an array for a struct.
                let object: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(&layer.text).map_err(|error| error.to_string())?;
                let contract: TaskContract =
                    serde_json::from_value(object.into()).map_err(|error| error.to_string())?;
                contract.gate
            }
            PolicyLayerName::Organisation | PolicyLayerName::Workspace => {
                let file: Self = toml::from_str(&layer.text).map_err(|error| error.to_string())?;
                if file.version != Some(1) {
                    return Err("missing `version = 1`".to_owned());
                }
                file
            }
        };
        Ok(file)
    }
}

impl LimitsSection {
    pub(crate) fn tighten(
        self,
        numbers: &mut PolicyLimits,
        rank: LayerRank,
        layer: PolicyLayerName,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        let ms = |name: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) => duration_ms(&text).map(Some).ok_or_else(|| {
                format!("invalid `{name}`: expected a number and s, m, h or d, such as \"7d\"")
            }),
        };
        let permille = match self.max_deletion_ratio {
            Some(ratio) if (0.0..=1.0).contains(&ratio) => Some((ratio * 1000.0).round() as usize),
            Some(_) => return Err("`max_deletion_ratio` must be between 0 and 1".to_owned()),
            None => None,
        };
        let mut least = LimitMerger { rank, layer, notes };
        let limits = numbers;
        least.take("max_file_bytes", &mut limits.max_file_bytes, self.max_file_bytes);
        least.take("max_changed_lines", &mut limits.max_changed_lines, self.max_changed_lines);
        least.take("max_deletion_ratio", &mut limits.max_deletion_permille, permille);
        least.take(
            "min_lines_for_ratio",
            &mut limits.min_lines_for_ratio,
            self.min_lines_for_ratio,
        );
        least.take("max_line_bytes", &mut limits.max_line_bytes, self.max_line_bytes);
        least.take(
            "max_open_drafts_per_task",
            &mut limits.max_open_drafts_per_task,
            self.max_open_drafts_per_task,
        );
        least.take(
            "max_files_per_changeset",
            &mut limits.max_files_per_changeset,
            self.max_files_per_changeset,
        );
        least.take("max_rejections", &mut limits.max_rejections, self.max_rejections);
        let ttl = ms("draft_ttl", self.draft_ttl)?;
        least.take("draft_ttl", &mut limits.draft_ttl_ms, ttl);
        let ttl = ms("escalation_ttl", self.escalation_ttl)?;
        least.take("escalation_ttl", &mut limits.escalation_ttl_ms, ttl);
        let timeout = ms("gate_timeout", self.gate_timeout)?;
        least.take("gate_timeout", &mut limits.gate_timeout_ms, timeout);
        least.take("max_looks_per_hour", &mut limits.max_looks_per_hour, self.max_looks_per_hour);
        Ok(())
    }
}

/// Merges limits. For every limit, smaller is stricter.
struct LimitMerger<'a> {
    rank: LayerRank,
    layer: PolicyLayerName,
    notes: &'a mut Vec<String>,
}

impl LimitMerger<'_> {
    fn take<T: Ord + Copy + std::fmt::Display>(
        &mut self,
        name: &str,
        known: &mut T,
        said: Option<T>,
    ) {
        let Some(said) = said else { return };
        if self.rank == LayerRank::Below && said > *known {
            let layer = self.layer;
            self.notes
                .push(format!("the {layer} asks for {name} = {said}; {known} stays in effect"));
            return;
        }
        *known = said;
    }
}

impl ExceptionSection {
    pub(crate) fn read(self) -> Result<(PolicyException, Vec<String>), String> {
        let Self { rule, path, value_sha256, reason, owner, expires } = self;
        let known = GateRule::parse(&rule).ok_or_else(|| format!("unknown rule `{rule}`"))?;
        if reason.trim().is_empty() || owner.trim().is_empty() {
            return Err(format!("exception for `{rule}` needs a reason and an owner"));
        }
        let date = expires.date.ok_or_else(|| {
            format!("exception for `{rule}`: `expires` must be a date, such as 2027-01-31")
        })?;
        let last_day = PolicyDate { year: date.year, month: date.month, day: date.day };
        let expires = date.to_string();
        let globs = vec![path.clone()];
        let exception =
            PolicyException { rule: known, path, value_sha256, reason, owner, expires, last_day };
        Ok((exception, globs))
    }
}
