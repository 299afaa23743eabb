//! The policy: TOML with a closed set of keys, in layers that can only tighten.
//!
//! Built-in values come first. The organisation's file, or a workspace file that a person trusted,
//! can replace them down to the floor of each rule; every other file can only make the policy
//! stricter. Unknown keys are errors, because a misspelled limit would otherwise be ignored.

mod check;
mod file;
mod globs;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::check::{PolicyCheck, is_build_output};
pub(crate) use self::globs::PathGlobs;

use self::check::CheckPatterns;
use self::file::PolicyFile;
use super::rule::{GateAction, GateRule};
use crate::Sha256Hex;
use crate::drafts::{ApprovalRules, DraftLimits, RelPath};
use crate::model::ModelName;

/// The source of a layer, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyLayerName {
    /// The user's or organisation's file, outside of all workspaces.
    Organisation,
    /// `.moothall/policy.toml` in the workspace.
    Workspace,
    /// The object `gate` in `_handoff/TASK_CONTRACT.json`, with the same keys.
    Task,
}

impl fmt::Display for PolicyLayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Organisation => "organisation",
            Self::Workspace => "workspace",
            Self::Task => "task contract",
        })
    }
}

/// One layer of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLayer {
    /// The source.
    pub name: PolicyLayerName,
    /// TOML, or JSON in a task contract.
    pub text: String,
    /// Whether a person trusted exactly this text. Only applies to a workspace policy, which may
    /// have come with a cloned repository.
    pub trusted: bool,
}

impl PolicyLayer {
    /// An untrusted layer.
    pub fn new(name: PolicyLayerName, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), trusted: false }
    }
}

/// Why a policy cannot be used. Nothing is judged in this case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{layer} policy: {what}")]
pub struct PolicyFault {
    /// The layer with the error.
    pub layer: PolicyLayerName,
    /// What is wrong.
    pub what: String,
}

/// A calendar day, compared with the last day of exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyDate {
    /// The year.
    pub year: u16,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
}

/// When a change without other findings needs review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviewMode {
    /// Never.
    Never,
    /// Only if a rule escalates.
    Risky,
    /// Always.
    Always,
}

/// Numeric limits of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyLimits {
    /// Size of one file.
    pub max_file_bytes: usize,
    /// Changed lines in one submission.
    pub max_changed_lines: usize,
    /// Deleted lines, per thousand.
    pub max_deletion_permille: usize,
    /// Files with fewer lines are exempt from the deletion ratio.
    pub min_lines_for_ratio: usize,
    /// Size of one line.
    pub max_line_bytes: usize,
    /// Open drafts in one task.
    pub max_open_drafts_per_task: usize,
    /// Drafts in one submission.
    pub max_files_per_changeset: usize,
    /// A draft is closed after this many rejections.
    pub max_rejections: u32,
    /// A draft expires after this idle time.
    pub draft_ttl_ms: u64,
    /// The same for a draft that is waiting for review.
    pub escalation_ttl_ms: u64,
    /// Time limit for one verdict.
    pub gate_timeout_ms: u64,
    /// Checks and questions to a reviewing model, together, per process and hour.
    pub max_looks_per_hour: usize,
}

impl PolicyLimits {
    pub(crate) fn exceeds_ratio(&self, lost: usize, of: usize) -> bool {
        lost * 1000 > of * self.max_deletion_permille
    }
}

/// Where people can approve drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewChannel {
    /// `moothall review`.
    Cli,
    /// The web interface.
    Web,
}

/// Whether the worker's MCP client may be asked to prompt its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationMode {
    /// No.
    Off,
    /// The client may show the URL of the review.
    Url,
    /// The client may pass on the user's answer. It does not prove that a person answered.
    Form,
}

/// A finding that is accepted until a date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyException {
    /// The rule.
    pub rule: GateRule,
    /// Path pattern.
    pub path: String,
    /// Limits the exception to the value with this hash.
    pub value_sha256: Option<Sha256Hex>,
    /// Why the finding is accepted.
    pub reason: String,
    /// The person responsible.
    pub owner: String,
    /// The last day, as written in the file.
    pub expires: String,
    #[serde(skip)]
    last_day: PolicyDate,
}

/// The effective policy of all layers.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Numeric limits.
    pub limits: PolicyLimits,
    /// When changes without other findings need review.
    pub preview: PreviewMode,
    /// Who may approve.
    pub reviewers: ApprovalRules,
    /// Where they can approve.
    pub channels: Vec<ReviewChannel>,
    /// Whether MCP clients may prompt their users.
    pub elicitation: ElicitationMode,
    /// The model that reviews changes before they are judged, if any.
    pub reviewing_model: Option<ModelName>,
    /// Checks that run on the drafted tree.
    pub checks: Vec<PolicyCheck>,
    /// Accepted findings.
    pub exceptions: Vec<PolicyException>,
    /// Requests of a layer that were refused because they would loosen the policy.
    pub notes: Vec<String>,
    rules: BTreeMap<GateRule, GateAction>,
    allow: Vec<PathGlobs>,
    deny: PathGlobs,
    protect: PathGlobs,
    exempt: Vec<PathGlobs>,
    trees: Vec<CheckPatterns>,
    hash: Sha256Hex,
}

/// Paths that workers can never change, whatever the policy says: Moothall's own configuration (a
/// broken one would block reviews), the `_handoff` export or a file in its place, and names that
/// some file systems treat as a reserved one (`.ſvn` with case folding, `GIT~1` as the short name
/// of `.git` on Windows). `RelPath` does not refuse these, because existing journals may contain
/// such paths.
const ALWAYS_DENIED: &[&str] = &[
    "**/moothall.toml",
    "_handoff",
    "_handoff/**",
    "**/{.git,.hg,.svn,.moothall}",
    "**/{.git,.hg,.svn,.moothall}/**",
    "**/{git,hg,svn,mootha}~[0-9]*",
    "**/{git,hg,svn,mootha}~[0-9]*/**",
];

/// Paths that need review unless a policy says otherwise.
const PROTECTED: &[&str] = &[
    ".github/**",
    "**/Dockerfile*",
    "**/build.rs",
    "**/Makefile",
    "**/*.lock",
    "**/CODEOWNERS",
    "**/.env*",
    "**/*.pem",
];

const SECOND: u64 = 1000;
const DAY: u64 = 24 * 60 * 60 * SECOND;

impl Policy {
    /// The policy without any files.
    pub fn built_in() -> Self {
        Self {
            limits: PolicyLimits {
                max_file_bytes: 1 << 20,
                max_changed_lines: 400,
                max_deletion_permille: 500,
                min_lines_for_ratio: 10,
                max_line_bytes: 20_000,
                max_open_drafts_per_task: 16,
                max_files_per_changeset: 20,
                max_rejections: 5,
                draft_ttl_ms: 7 * DAY,
                escalation_ttl_ms: 14 * DAY,
                gate_timeout_ms: 10 * SECOND,
                max_looks_per_hour: 120,
            },
            preview: PreviewMode::Risky,
            reviewers: ApprovalRules::default(),
            channels: vec![ReviewChannel::Cli, ReviewChannel::Web],
            elicitation: ElicitationMode::Url,
            reviewing_model: None,
            checks: Vec::new(),
            exceptions: Vec::new(),
            notes: Vec::new(),
            rules: GateRule::ALL.iter().map(|rule| (*rule, rule.default_action())).collect(),
            allow: Vec::new(),
            deny: PathGlobs::built_in(ALWAYS_DENIED),
            protect: PathGlobs::built_in(PROTECTED),
            exempt: Vec::new(),
            trees: Vec::new(),
            hash: Sha256Hex::of(b"moothall policy 1\n"),
        }
    }

    /// Combines layers. They are applied by strength, not in the given order.
    pub fn of(layers: &[PolicyLayer]) -> Result<Self, PolicyFault> {
        let mut policy = Self::built_in();
        let mut layers: Vec<&PolicyLayer> = layers.iter().collect();
        layers.sort_by_key(|layer| layer.name);
        let mut whole = String::from("moothall policy 1\n");
        for (at, layer) in layers.iter().enumerate() {
            let fault = |what: String| PolicyFault { layer: layer.name, what };
            let file = PolicyFile::read(layer).map_err(fault)?;
            // Others can write files in the workspace, so an untrusted one never replaces built-in
            // values.
            let rank = match (at, layer.name) {
                (0, PolicyLayerName::Organisation) => LayerRank::Highest,
                (0, PolicyLayerName::Workspace) if layer.trusted => LayerRank::Highest,
                _ => LayerRank::Below,
            };
            policy.take(file, layer.name, rank).map_err(fault)?;
            let text = Sha256Hex::of(layer.text.as_bytes());
            let trusted = if layer.trusted { " trusted" } else { "" };
            whole.push_str(&format!("{} {text}{trusted}\n", layer.name));
        }
        policy.hash = Sha256Hex::of(whole.as_bytes());
        Ok(policy)
    }

    /// What the workspace policy loosens, or would loosen if it were trusted.
    pub fn loosened_by_workspace(layers: &[PolicyLayer]) -> Result<Vec<String>, PolicyFault> {
        let untrusted = layers.iter().map(|layer| PolicyLayer { trusted: false, ..layer.clone() });
        let policy = Self::of(&untrusted.collect::<Vec<_>>())?;
        let of_workspace = format!("the {} asks for ", PolicyLayerName::Workspace);
        let wanted = |note: &String| {
            let wanted = note.strip_prefix(&of_workspace)?;
            Some(wanted.rsplit_once("; ").map_or(wanted, |(wanted, _)| wanted).to_owned())
        };
        Ok(policy.notes.iter().filter_map(wanted).collect())
    }

    /// Hash of all layers; identifies the policy.
    pub fn hash(&self) -> Sha256Hex {
        self.hash
    }

    /// The action for a finding, with exceptions applied.
    pub fn action(
        &self,
        rule: GateRule,
        path: &RelPath,
        value: Option<Sha256Hex>,
        today: PolicyDate,
    ) -> GateAction {
        let excused = self.exceptions.iter().zip(&self.exempt).any(|(one, globs)| {
            one.rule == rule
                && today <= one.last_day
                && globs.has(path)
                && one.value_sha256.is_none_or(|wanted| value == Some(wanted))
        });
        if excused { GateAction::Allow } else { self.rule(rule) }
    }

    /// The action for a rule, without exceptions.
    pub fn rule(&self, rule: GateRule) -> GateAction {
        self.rules.get(&rule).copied().unwrap_or_else(|| rule.default_action())
    }

    /// Whether workers may neither read nor change a path.
    pub fn denies(&self, path: &RelPath) -> bool {
        self.deny.has(path) || !self.allow.iter().all(|globs| globs.has(path))
    }

    /// Whether every change of a path needs review.
    pub fn protects(&self, path: &RelPath) -> bool {
        self.protect.has(path)
    }

    /// The checks that must run for these paths.
    pub fn checks_for<'a>(
        &self,
        paths: impl Iterator<Item = &'a RelPath> + Clone,
    ) -> Vec<&PolicyCheck> {
        let asks = |tree: &CheckPatterns| paths.clone().any(|path| tree.asks(path));
        let wanted = self.checks.iter().zip(&self.trees).filter(|(_, tree)| asks(tree));
        wanted.map(|(check, _)| check).collect()
    }

    /// Whether a check gets a file of the workspace.
    pub fn includes_file(&self, check: &PolicyCheck, path: &RelPath) -> bool {
        // Workers see the output of a check, so it must not get denied files.
        !self.deny.has(path) && self.tree(check).is_some_and(|tree| tree.has(path))
    }

    /// Whether a check excludes a path.
    pub fn excludes(&self, check: &PolicyCheck, path: &RelPath) -> bool {
        self.tree(check).is_some_and(|tree| tree.excludes(path))
    }

    fn tree(&self, check: &PolicyCheck) -> Option<&CheckPatterns> {
        let mut all = self.checks.iter().zip(&self.trees);
        all.find(|(one, _)| one.id == check.id).map(|(_, tree)| tree)
    }

    /// The patterns that match a path, for display: `deny secrets/**`.
    pub fn patterns_for(&self, path: &RelPath) -> Vec<String> {
        let mut matched = Vec::new();
        for (word, globs) in [("deny", &self.deny), ("protect", &self.protect)] {
            matched.extend(globs.matching(path).into_iter().map(|text| format!("{word} {text}")));
        }
        for globs in &self.allow {
            match globs.matching(path).first() {
                Some(text) => matched.push(format!("allow {text}")),
                None => matched.push(format!("not in allow [{}]", globs.texts().join(", "))),
            }
        }
        matched
    }

    /// The exceptions that match a path, including expired ones.
    pub fn exceptions_for(&self, path: &RelPath) -> impl Iterator<Item = &PolicyException> {
        let about = self.exceptions.iter().zip(&self.exempt);
        about.filter(|(_, globs)| globs.has(path)).map(|(one, _)| one)
    }

    /// The limits for the draft state machine.
    pub fn draft_limits(&self) -> DraftLimits {
        DraftLimits {
            open_per_task: self.limits.max_open_drafts_per_task,
            per_submission: self.limits.max_files_per_changeset,
            rejections: self.limits.max_rejections,
            draft_ttl_ms: self.limits.draft_ttl_ms,
            escalation_ttl_ms: self.limits.escalation_ttl_ms,
        }
    }

    fn take(
        &mut self,
        file: PolicyFile,
        name: PolicyLayerName,
        rank: LayerRank,
    ) -> Result<(), String> {
        let PolicyFile { version: _, defaults, limits, paths, rules, check, exception, review } =
            file;
        self.take_rules(defaults.unlisted_rule, rules, name, rank)?;
        if let Some(action) = defaults.on_error {
            self.set(GateRule::GateError, action, name, rank);
        }
        if let Some(preview) = defaults.preview {
            if rank == LayerRank::Below && preview < self.preview {
                self.record_refused(name, "review of fewer changes (preview)");
            }
            self.preview = match rank {
                LayerRank::Highest => preview,
                LayerRank::Below => self.preview.max(preview),
            };
        }
        limits.tighten(&mut self.limits, rank, name, &mut self.notes)?;
        if let Some(allow) = paths.allow {
            self.allow.push(PathGlobs::new(allow)?);
        }
        if let Some(deny) = paths.deny {
            self.deny = self.deny.and(deny)?;
        }
        if let Some(protect) = paths.protect {
            let missing = |text: &&String| !protect.contains(text);
            let fewer = self.protect.texts().iter().filter(missing).count();
            if rank == LayerRank::Below && fewer > 0 {
                self.record_refused(name, &format!("{fewer} fewer protected patterns"));
            }
            self.protect = match rank {
                LayerRank::Highest => PathGlobs::new(protect)?,
                LayerRank::Below => self.protect.and(protect)?,
            };
        }
        for one in check {
            let (check, tree) = one.read()?;
            if self.checks.iter().any(|known| known.id == check.id) {
                return Err(format!("duplicate check `{}`", check.id));
            }
            self.checks.push(check);
            self.trees.push(tree);
        }
        if rank == LayerRank::Below && name == PolicyLayerName::Task && !exception.is_empty() {
            return Err(
                "a task contract cannot contain exceptions, because they loosen the policy"
                    .to_owned(),
            );
        }
        for one in exception {
            let (exception, globs) = one.read()?;
            if rank == LayerRank::Below {
                let (rule, path) = (exception.rule, &exception.path);
                self.record_refused(name, &format!("an exception from {rule} for `{path}`"));
                continue;
            }
            self.exceptions.push(exception);
            self.exempt.push(PathGlobs::new(globs)?);
        }
        if let Some(approvers) = review.approvers {
            self.reviewers.approvers = match (rank, self.reviewers.approvers.is_empty()) {
                (LayerRank::Highest, _) | (LayerRank::Below, true) => approvers,
                (LayerRank::Below, false) => {
                    let both = |who: &String| approvers.contains(who);
                    let left: Vec<_> =
                        self.reviewers.approvers.iter().filter(|who| both(who)).cloned().collect();
                    if left.is_empty() {
                        return Err(
                            "no approvers left: the policy files name different people".to_owned()
                        );
                    }
                    left
                }
            };
        }
        if let Some(channels) = review.channels {
            let known = |channel: &ReviewChannel| {
                rank == LayerRank::Highest || self.channels.contains(channel)
            };
            self.channels = channels.into_iter().filter(known).collect();
        }
        if let Some(elicitation) = review.elicitation {
            if rank == LayerRank::Below && elicitation > self.elicitation {
                self.record_refused(
                    name,
                    "answers from clients on behalf of their users (elicitation)",
                );
            }
            self.elicitation = match rank {
                LayerRank::Highest => elicitation,
                LayerRank::Below => self.elicitation.min(elicitation),
            };
        }
        if let Some(model) = review.model {
            // Naming a model sends drafts to its provider, with the user's key.
            if name != PolicyLayerName::Organisation {
                return Err("only the organisation policy can set `model`".to_owned());
            }
            self.reviewing_model = Some(model);
        }
        if let Some(may) = review.author_may_approve {
            let before = self.reviewers.author_may_approve;
            if rank == LayerRank::Below && may && !before {
                self.record_refused(
                    name,
                    "approval of drafts by their authors (author_may_approve)",
                );
            }
            self.reviewers.author_may_approve = may && (rank == LayerRank::Highest || before);
        }
        Ok(())
    }

    fn take_rules(
        &mut self,
        unlisted: Option<GateAction>,
        rules: BTreeMap<String, GateAction>,
        name: PolicyLayerName,
        rank: LayerRank,
    ) -> Result<(), String> {
        let mut listed = BTreeMap::new();
        for (id, action) in rules {
            let rule = GateRule::parse(&id).ok_or_else(|| format!("unknown rule `{id}`"))?;
            listed.insert(rule, action);
        }
        for rule in GateRule::ALL {
            if let Some(action) = listed.get(rule).copied() {
                self.set(*rule, action, name, rank);
            } else if let Some(action) = unlisted {
                // `unlisted_rule` never loosens a rule.
                self.set(*rule, action.max(self.rule(*rule)), name, rank);
            }
        }
        Ok(())
    }

    fn set(&mut self, rule: GateRule, action: GateAction, name: PolicyLayerName, rank: LayerRank) {
        let least = match rank {
            LayerRank::Highest => rule.floor(),
            LayerRank::Below => self.rule(rule),
        };
        if action < least {
            self.notes
                .push(format!("the {name} asks for {rule} = {action}; {least} stays in effect"));
        }
        self.rules.insert(rule, action.max(least));
    }

    /// Records that a layer's request to loosen the policy was refused.
    fn record_refused(&mut self, name: PolicyLayerName, wanted: &str) {
        self.notes.push(format!("the {name} asks for {wanted}; this is ignored"));
    }
}

/// Whether a layer replaces built-in values or can only tighten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerRank {
    Highest,
    Below,
}

/// Parses `90s`, `10m`, `12h` or `7d` into milliseconds.
pub fn duration_ms(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    number.checked_mul(seconds)?.checked_mul(SECOND)
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
