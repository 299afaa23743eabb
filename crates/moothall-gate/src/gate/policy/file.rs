//! The policy as it stands in a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::check::CheckFile;
use super::{
    Channel, Elicitation, Exception, Layer, LayerName, Numbers, Preview, Rank, Today, duration_ms,
};
use crate::Sha256Hex;
use crate::gate::rule::{Action, Rule};
use crate::model::ModelName;

/// The longest policy we read.
const MAX_BYTES: usize = 256 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) version: Option<u32>,
    pub(super) defaults: DefaultsFile,
    pub(super) limits: LimitsFile,
    pub(super) paths: PathsFile,
    pub(super) rules: BTreeMap<String, Action>,
    pub(super) check: Vec<CheckFile>,
    pub(super) exception: Vec<ExceptionFile>,
    pub(super) review: ReviewFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DefaultsFile {
    pub(super) unlisted_rule: Option<Action>,
    pub(super) on_error: Option<Action>,
    pub(super) preview: Option<Preview>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsFile {
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
pub(super) struct PathsFile {
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
    pub(super) protect: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExceptionFile {
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
pub(super) struct ReviewFile {
    pub(super) approvers: Option<Vec<String>>,
    pub(super) author_may_approve: Option<bool>,
    pub(super) channels: Option<Vec<Channel>>,
    pub(super) elicitation: Option<Elicitation>,
    pub(super) model: Option<ModelName>,
}

/// A task contract may say much to others; only `gate` is for us.
#[derive(Debug, Default, Deserialize)]
struct Contract {
    #[serde(default)]
    gate: File,
}

impl File {
    pub(super) fn read(layer: &Layer) -> Result<Self, String> {
        if layer.text.len() > MAX_BYTES {
            return Err(format!("longer than {MAX_BYTES} bytes"));
        }
        let file = match layer.name {
            LayerName::Task => {
                // Serde would read a list as an object, field by field.
                let object: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(&layer.text).map_err(|error| error.to_string())?;
                let contract: Contract =
                    serde_json::from_value(object.into()).map_err(|error| error.to_string())?;
                contract.gate
            }
            LayerName::Organisation | LayerName::Workspace => {
                let file: Self = toml::from_str(&layer.text).map_err(|error| error.to_string())?;
                if file.version != Some(1) {
                    return Err("`version = 1` is missing".to_owned());
                }
                file
            }
        };
        Ok(file)
    }
}

impl LimitsFile {
    pub(super) fn tighten(
        self,
        numbers: &mut Numbers,
        rank: Rank,
        layer: LayerName,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        let ms = |name: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) => duration_ms(&text).map(Some).ok_or_else(|| {
                format!("`{name}`: write a number and s, m, h or d, such as \"7d\"")
            }),
        };
        let permille = match self.max_deletion_ratio {
            Some(ratio) if (0.0..=1.0).contains(&ratio) => Some((ratio * 1000.0).round() as usize),
            Some(_) => return Err("`max_deletion_ratio` is between 0 and 1".to_owned()),
            None => None,
        };
        let mut least = Least { rank, layer, notes };
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

/// Every limit is stricter when it is smaller.
struct Least<'a> {
    rank: Rank,
    layer: LayerName,
    notes: &'a mut Vec<String>,
}

impl Least<'_> {
    fn take<T: Ord + Copy + std::fmt::Display>(
        &mut self,
        name: &str,
        known: &mut T,
        said: Option<T>,
    ) {
        let Some(said) = said else { return };
        if self.rank == Rank::Below && said > *known {
            let layer = self.layer;
            self.notes.push(format!("the {layer} wants {name} = {said}; it stays {known}"));
            return;
        }
        *known = said;
    }
}

impl ExceptionFile {
    pub(super) fn read(self) -> Result<(Exception, Vec<String>), String> {
        let Self { rule, path, value_sha256, reason, owner, expires } = self;
        let known = Rule::parse(&rule).ok_or_else(|| format!("there is no rule `{rule}`"))?;
        if reason.trim().is_empty() || owner.trim().is_empty() {
            return Err(format!("an exception of `{rule}` needs a reason and an owner"));
        }
        let date = expires.date.ok_or_else(|| {
            format!("an exception of `{rule}`: `expires` is a day, such as 2027-01-31")
        })?;
        let last_day = Today { year: date.year, month: date.month, day: date.day };
        let expires = date.to_string();
        let globs = vec![path.clone()];
        let exception =
            Exception { rule: known, path, value_sha256, reason, owner, expires, last_day };
        Ok((exception, globs))
    }
}
