//! The policy: TOML with a closed vocabulary, in layers that can only tighten.
//!
//! Built-in values come first. The organisation's file, or a workspace's file that a person trusted,
//! replaces them as far as each rule's floor allows; every other file may only make things stricter.
//! A key that is not known is an error, because a misspelt limit would otherwise be no limit.

mod check;
mod file;
mod globs;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::check::{Check, made_by_tools};
pub(super) use self::globs::Globs;

use self::check::Tree;
use self::file::File;
use super::rule::{Action, Rule};
use crate::Sha256Hex;
use crate::drafts::{Limits as DraftLimits, RelPath, Reviewers};
use crate::model::ModelName;

/// Where a layer comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerName {
    /// Of the user or the organisation, outside of every workspace.
    Organisation,
    /// `.moothall/policy.toml` of the workspace.
    Workspace,
    /// `_handoff/TASK_CONTRACT.json`: its object `gate`, in the same words.
    Task,
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Organisation => "organisation",
            Self::Workspace => "workspace",
            Self::Task => "task contract",
        })
    }
}

/// The text of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Where it is from.
    pub name: LayerName,
    /// What it says: TOML, or JSON in a task contract.
    pub text: String,
    /// Whether a person trusted exactly this text. Only that of a workspace can be trusted: it may
    /// have come with a cloned repository.
    pub trusted: bool,
}

impl Layer {
    /// A layer that nobody trusted in particular.
    pub fn new(name: LayerName, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), trusted: false }
    }
}

/// Why a policy cannot be used. Nothing is judged then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy of the {layer}: {what}")]
pub struct PolicyFault {
    /// Whose.
    pub layer: LayerName,
    /// What is wrong.
    pub what: String,
}

/// A day: an exception ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Today {
    /// The year.
    pub year: u16,
    /// The month, from 1.
    pub month: u8,
    /// The day, from 1.
    pub day: u8,
}

/// When a person sees a change that nothing stands against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preview {
    /// Never.
    Never,
    /// Only where a rule escalates.
    Risky,
    /// Always.
    Always,
}

/// The numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Numbers {
    /// Bytes of one file.
    pub max_file_bytes: usize,
    /// Changed lines of one submission.
    pub max_changed_lines: usize,
    /// Deleted lines of a thousand.
    pub max_deletion_permille: usize,
    /// Lines from which the ratio counts.
    pub min_lines_for_ratio: usize,
    /// Bytes of one line.
    pub max_line_bytes: usize,
    /// Open drafts of one task.
    pub max_open_drafts_per_task: usize,
    /// Drafts that are submitted together.
    pub max_files_per_changeset: usize,
    /// Rejections after which a draft is closed.
    pub max_rejections: u32,
    /// Idle milliseconds after which a draft expires.
    pub draft_ttl_ms: u64,
    /// The same while a person is waited for.
    pub escalation_ttl_ms: u64,
    /// Milliseconds for one verdict.
    pub gate_timeout_ms: u64,
    /// Checks that one process runs and questions that it asks a reviewing model, together, within
    /// an hour.
    pub max_looks_per_hour: usize,
}

impl Numbers {
    pub(super) fn exceeds_ratio(&self, lost: usize, of: usize) -> bool {
        lost * 1000 > of * self.max_deletion_permille
    }
}

/// Where people may say yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// `moothall review`.
    Cli,
    /// The web interface.
    Web,
}

/// Whether a worker's own client may be asked to ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elicitation {
    /// No.
    Off,
    /// It may show the address of the review.
    Url,
    /// It may pass the answer on. It is no proof of a person.
    Form,
}

/// A finding that somebody answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exception {
    /// Of which rule.
    pub rule: Rule,
    /// In which files.
    pub path: String,
    /// Only for this value, by its hash.
    pub value_sha256: Option<Sha256Hex>,
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The last day, as in the file.
    pub expires: String,
    #[serde(skip)]
    last_day: Today,
}

/// Everything the layers come to.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The numbers.
    pub limits: Numbers,
    /// When a person looks anyway.
    pub preview: Preview,
    /// Who may approve.
    pub reviewers: Reviewers,
    /// Where they may.
    pub channels: Vec<Channel>,
    /// Whether clients are asked to ask.
    pub elicitation: Elicitation,
    /// The model that looks at a change before it is judged, if one shall.
    pub reviewing_model: Option<ModelName>,
    /// What runs on the drafted tree.
    pub checks: Vec<Check>,
    /// Findings that somebody answers for.
    pub exceptions: Vec<Exception>,
    /// What a layer wanted and did not get.
    pub notes: Vec<String>,
    rules: BTreeMap<Rule, Action>,
    allow: Vec<Globs>,
    deny: Globs,
    protect: Globs,
    exempt: Vec<Globs>,
    trees: Vec<Tree>,
    hash: Sha256Hex,
}

/// What workers never change, whatever a policy says: our own configuration (a broken one would keep
/// people from reviewing), the view that is made for them, a file in its place, and names that some file system takes for a reserved one (`.ſvn` with case folding,
/// `GIT~1` as the short name of `.git` on Windows). Not refused by `RelPath`, because journals may
/// already have such a path.
const ALWAYS_DENIED: &[&str] = &[
    "**/moothall.toml",
    "_handoff",
    "_handoff/**",
    "**/{.git,.hg,.svn,.moothall}",
    "**/{.git,.hg,.svn,.moothall}/**",
    "**/{git,hg,svn,mootha}~[0-9]*",
    "**/{git,hg,svn,mootha}~[0-9]*/**",
];

/// What a person looks at where no policy says otherwise.
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
    /// The policy where no file says anything.
    pub fn built_in() -> Self {
        Self {
            limits: Numbers {
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
            preview: Preview::Risky,
            reviewers: Reviewers::default(),
            channels: vec![Channel::Cli, Channel::Web],
            elicitation: Elicitation::Url,
            reviewing_model: None,
            checks: Vec::new(),
            exceptions: Vec::new(),
            notes: Vec::new(),
            rules: Rule::ALL.iter().map(|rule| (*rule, rule.default_action())).collect(),
            allow: Vec::new(),
            deny: Globs::built_in(ALWAYS_DENIED),
            protect: Globs::built_in(PROTECTED),
            exempt: Vec::new(),
            trees: Vec::new(),
            hash: Sha256Hex::of(b"moothall policy 1\n"),
        }
    }

    /// What these layers come to. They are taken in the order of their strength, whatever the order
    /// they are given in.
    pub fn of(layers: &[Layer]) -> Result<Self, PolicyFault> {
        let mut policy = Self::built_in();
        let mut layers: Vec<&Layer> = layers.iter().collect();
        layers.sort_by_key(|layer| layer.name);
        let mut whole = String::from("moothall policy 1\n");
        for (at, layer) in layers.iter().enumerate() {
            let fault = |what: String| PolicyFault { layer: layer.name, what };
            let file = File::read(layer).map_err(fault)?;
            // What lies in the workspace is for others to write: it replaces nothing by itself.
            let rank = match (at, layer.name) {
                (0, LayerName::Organisation) => Rank::Highest,
                (0, LayerName::Workspace) if layer.trusted => Rank::Highest,
                _ => Rank::Below,
            };
            policy.take(file, layer.name, rank).map_err(fault)?;
            let text = Sha256Hex::of(layer.text.as_bytes());
            let trusted = if layer.trusted { " trusted" } else { "" };
            whole.push_str(&format!("{} {text}{trusted}\n", layer.name));
        }
        policy.hash = Sha256Hex::of(whole.as_bytes());
        Ok(policy)
    }

    /// What the workspace's policy loosens, or would loosen if a person trusted it.
    pub fn loosened_by_workspace(layers: &[Layer]) -> Result<Vec<String>, PolicyFault> {
        let untrusted = layers.iter().map(|layer| Layer { trusted: false, ..layer.clone() });
        let policy = Self::of(&untrusted.collect::<Vec<_>>())?;
        let of_workspace = format!("the {} wants ", LayerName::Workspace);
        let wanted = |note: &String| {
            let wanted = note.strip_prefix(&of_workspace)?;
            Some(wanted.split_once("; it stays").map_or(wanted, |(wanted, _)| wanted).to_owned())
        };
        Ok(policy.notes.iter().filter_map(wanted).collect())
    }

    /// Which policy this is.
    pub fn hash(&self) -> Sha256Hex {
        self.hash
    }

    /// What happens about a finding.
    pub fn action(
        &self,
        rule: Rule,
        path: &RelPath,
        value: Option<Sha256Hex>,
        today: Today,
    ) -> Action {
        let excused = self.exceptions.iter().zip(&self.exempt).any(|(one, globs)| {
            one.rule == rule
                && today <= one.last_day
                && globs.has(path)
                && one.value_sha256.is_none_or(|wanted| value == Some(wanted))
        });
        if excused { Action::Allow } else { self.rule(rule) }
    }

    /// What happens about a rule without exceptions.
    pub fn rule(&self, rule: Rule) -> Action {
        self.rules.get(&rule).copied().unwrap_or_else(|| rule.default_action())
    }

    /// Whether workers may neither read nor change a path.
    pub fn denies(&self, path: &RelPath) -> bool {
        self.deny.has(path) || !self.allow.iter().all(|globs| globs.has(path))
    }

    /// Whether a person looks at every change of a path.
    pub fn protects(&self, path: &RelPath) -> bool {
        self.protect.has(path)
    }

    /// The checks that these paths ask for.
    pub fn checks_for<'a>(&self, paths: impl Iterator<Item = &'a RelPath> + Clone) -> Vec<&Check> {
        let asks = |tree: &Tree| paths.clone().any(|path| tree.asks(path));
        let wanted = self.checks.iter().zip(&self.trees).filter(|(_, tree)| asks(tree));
        wanted.map(|(check, _)| check).collect()
    }

    /// Whether a file of the workspace is handed to a check.
    pub fn hands_over(&self, check: &Check, path: &RelPath) -> bool {
        // Workers hear what a check printed.
        !self.deny.has(path) && self.tree(check).is_some_and(|tree| tree.has(path))
    }

    /// Whether a check says that it does not want a path.
    pub fn leaves_out(&self, check: &Check, path: &RelPath) -> bool {
        self.tree(check).is_some_and(|tree| tree.leaves_out(path))
    }

    fn tree(&self, check: &Check) -> Option<&Tree> {
        let mut all = self.checks.iter().zip(&self.trees);
        all.find(|(one, _)| one.id == check.id).map(|(_, tree)| tree)
    }

    /// The patterns that speak about a path, for people: `deny secrets/**`.
    pub fn patterns_for(&self, path: &RelPath) -> Vec<String> {
        let mut said = Vec::new();
        for (word, globs) in [("deny", &self.deny), ("protect", &self.protect)] {
            said.extend(globs.matching(path).into_iter().map(|text| format!("{word} {text}")));
        }
        for globs in &self.allow {
            match globs.matching(path).first() {
                Some(text) => said.push(format!("allow {text}")),
                None => said.push(format!("not in allow [{}]", globs.texts().join(", "))),
            }
        }
        said
    }

    /// The exceptions that speak about a path, whether their time is over or not.
    pub fn exceptions_for(&self, path: &RelPath) -> impl Iterator<Item = &Exception> {
        let about = self.exceptions.iter().zip(&self.exempt);
        about.filter(|(_, globs)| globs.has(path)).map(|(one, _)| one)
    }

    /// The numbers that the state machine of drafts needs.
    pub fn draft_limits(&self) -> DraftLimits {
        DraftLimits {
            open_per_task: self.limits.max_open_drafts_per_task,
            per_submission: self.limits.max_files_per_changeset,
            rejections: self.limits.max_rejections,
            draft_ttl_ms: self.limits.draft_ttl_ms,
            escalation_ttl_ms: self.limits.escalation_ttl_ms,
        }
    }

    fn take(&mut self, file: File, name: LayerName, rank: Rank) -> Result<(), String> {
        let File { version: _, defaults, limits, paths, rules, check, exception, review } = file;
        self.take_rules(defaults.unlisted_rule, rules, name, rank)?;
        if let Some(action) = defaults.on_error {
            self.set(Rule::GateError, action, name, rank);
        }
        if let Some(preview) = defaults.preview {
            if rank == Rank::Below && preview < self.preview {
                self.keep(name, "to show a person fewer changes (preview)");
            }
            self.preview = match rank {
                Rank::Highest => preview,
                Rank::Below => self.preview.max(preview),
            };
        }
        limits.tighten(&mut self.limits, rank, name, &mut self.notes)?;
        if let Some(allow) = paths.allow {
            self.allow.push(Globs::new(allow)?);
        }
        if let Some(deny) = paths.deny {
            self.deny = self.deny.and(deny)?;
        }
        if let Some(protect) = paths.protect {
            let missing = |text: &&String| !protect.contains(text);
            let fewer = self.protect.texts().iter().filter(missing).count();
            if rank == Rank::Below && fewer > 0 {
                self.keep(name, &format!("to leave {fewer} protected patterns out"));
            }
            self.protect = match rank {
                Rank::Highest => Globs::new(protect)?,
                Rank::Below => self.protect.and(protect)?,
            };
        }
        for one in check {
            let (check, tree) = one.read()?;
            if self.checks.iter().any(|known| known.id == check.id) {
                return Err(format!("check `{}` is there twice", check.id));
            }
            self.checks.push(check);
            self.trees.push(tree);
        }
        if rank == Rank::Below && name == LayerName::Task && !exception.is_empty() {
            return Err("a task contract cannot have exceptions: they loosen".to_owned());
        }
        for one in exception {
            let (exception, globs) = one.read()?;
            if rank == Rank::Below {
                let (rule, path) = (exception.rule, &exception.path);
                self.keep(name, &format!("an exception of {rule} for `{path}`"));
                continue;
            }
            self.exceptions.push(exception);
            self.exempt.push(Globs::new(globs)?);
        }
        if let Some(approvers) = review.approvers {
            self.reviewers.approvers = match (rank, self.reviewers.approvers.is_empty()) {
                (Rank::Highest, _) | (Rank::Below, true) => approvers,
                (Rank::Below, false) => {
                    let both = |who: &String| approvers.contains(who);
                    let left: Vec<_> =
                        self.reviewers.approvers.iter().filter(|who| both(who)).cloned().collect();
                    if left.is_empty() {
                        return Err("nobody is left who may approve".to_owned());
                    }
                    left
                }
            };
        }
        if let Some(channels) = review.channels {
            let known =
                |channel: &Channel| rank == Rank::Highest || self.channels.contains(channel);
            self.channels = channels.into_iter().filter(known).collect();
        }
        if let Some(elicitation) = review.elicitation {
            if rank == Rank::Below && elicitation > self.elicitation {
                self.keep(name, "to let clients answer for their users (elicitation)");
            }
            self.elicitation = match rank {
                Rank::Highest => elicitation,
                Rank::Below => self.elicitation.min(elicitation),
            };
        }
        if let Some(model) = review.model {
            // Naming a model sends drafts to its provider, with the user's key.
            if name != LayerName::Organisation {
                return Err("only the policy of the organisation may name a `model`".to_owned());
            }
            self.reviewing_model = Some(model);
        }
        if let Some(may) = review.author_may_approve {
            let before = self.reviewers.author_may_approve;
            if rank == Rank::Below && may && !before {
                self.keep(name, "to let authors approve their own drafts (author_may_approve)");
            }
            self.reviewers.author_may_approve = may && (rank == Rank::Highest || before);
        }
        Ok(())
    }

    fn take_rules(
        &mut self,
        unlisted: Option<Action>,
        rules: BTreeMap<String, Action>,
        name: LayerName,
        rank: Rank,
    ) -> Result<(), String> {
        let mut listed = BTreeMap::new();
        for (id, action) in rules {
            let rule = Rule::parse(&id).ok_or_else(|| format!("there is no rule `{id}`"))?;
            listed.insert(rule, action);
        }
        for rule in Rule::ALL {
            if let Some(action) = listed.get(rule).copied() {
                self.set(*rule, action, name, rank);
            } else if let Some(action) = unlisted {
                // Whoever says nothing about a rule does not loosen it.
                self.set(*rule, action.max(self.rule(*rule)), name, rank);
            }
        }
        Ok(())
    }

    fn set(&mut self, rule: Rule, action: Action, name: LayerName, rank: Rank) {
        let least = match rank {
            Rank::Highest => rule.floor(),
            Rank::Below => self.rule(rule),
        };
        if action < least {
            self.notes.push(format!("the {name} wants {rule} = {action}; it stays {least}"));
        }
        self.rules.insert(rule, action.max(least));
    }

    /// Notes that a layer does not get what would loosen the policy.
    fn keep(&mut self, name: LayerName, wanted: &str) {
        self.notes.push(format!("the {name} wants {wanted}; it stays as it is"));
    }
}

/// Whether a layer replaces what is built in, or tightens what another layer said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    Highest,
    Below,
}

/// Reads `90s`, `10m`, `12h` or `7d` as milliseconds.
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
