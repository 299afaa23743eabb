//! Check definitions of a policy and the files they apply to.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::duration_ms;
use super::globs::PathGlobs;
use crate::drafts::RelPath;
use crate::gate::rule::{GateAction, GateRule};

/// The default image.
const DEFAULT_IMAGE: &str = "python";

/// Excluded from checks by default: build output and installed dependencies, which tools can
/// recreate.
const DEFAULT_EXCLUDES: &[&str] =
    &["**/target/**", "**/node_modules/**", "**/__pycache__/**", "**/.venv/**"];

/// Whether a file is build output or an installed dependency, which is not meant to be edited.
pub fn is_build_output(path: &RelPath) -> bool {
    static GLOBS: LazyLock<PathGlobs> = LazyLock::new(|| PathGlobs::built_in(DEFAULT_EXCLUDES));
    GLOBS.has(path)
}

/// A check that runs on the drafted tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyCheck {
    /// The unique ID.
    pub id: String,
    /// Program and arguments.
    pub run: Vec<String>,
    /// Time limit.
    pub timeout_ms: u64,
    /// The required sandbox engine, if not the default.
    pub sandbox: Option<String>,
    /// The sandbox image.
    pub image: String,
    /// Patterns of changed paths that trigger the check.
    pub when: Vec<String>,
    /// Patterns of files passed to the check.
    pub files: Vec<String>,
    /// Patterns of files excluded from `files`.
    pub without: Vec<String>,
    /// Action for a failure, if not the rule's.
    pub on_fail: Option<GateAction>,
    /// Action for a timeout, if not the rule's.
    pub on_timeout: Option<GateAction>,
}

/// Compiled patterns of one check.
#[derive(Debug, Clone)]
pub(crate) struct CheckPatterns {
    when: PathGlobs,
    files: PathGlobs,
    without: PathGlobs,
}

impl CheckPatterns {
    pub(crate) fn asks(&self, path: &RelPath) -> bool {
        self.when.has(path)
    }

    pub(crate) fn has(&self, path: &RelPath) -> bool {
        self.files.has(path) && !self.excludes(path)
    }

    pub(crate) fn excludes(&self, path: &RelPath) -> bool {
        self.without.has(path)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckSection {
    id: String,
    run: Vec<String>,
    timeout: String,
    #[serde(default)]
    sandbox: Option<String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    when: Option<Vec<String>>,
    #[serde(default)]
    files: Option<Vec<String>>,
    #[serde(default)]
    without: Option<Vec<String>>,
    #[serde(default)]
    on_fail: Option<GateAction>,
    #[serde(default)]
    on_timeout: Option<GateAction>,
}

impl CheckSection {
    pub(crate) fn read(self) -> Result<(PolicyCheck, CheckPatterns), String> {
        let Self { id, run, timeout, sandbox, image, when, files, without, on_fail, on_timeout } =
            self;
        if id.is_empty() || run.is_empty() {
            return Err("a check needs `id` and `run`".to_owned());
        }
        let timeout_ms = duration_ms(&timeout).ok_or_else(|| {
            format!("check `{id}`: invalid `timeout` (expected a duration such as \"5m\")")
        })?;
        // A check cannot be configured to fail without consequence.
        let least =
            |action: Option<GateAction>, rule: GateRule| action.map(|said| said.max(rule.floor()));
        let everything = || vec!["**".to_owned()];
        let check = PolicyCheck {
            id,
            run,
            timeout_ms,
            sandbox,
            image: image.unwrap_or_else(|| DEFAULT_IMAGE.to_owned()),
            when: when.unwrap_or_else(everything),
            files: files.unwrap_or_else(everything),
            without: without
                .unwrap_or_else(|| DEFAULT_EXCLUDES.iter().map(|&glob| glob.to_owned()).collect()),
            on_fail: least(on_fail, GateRule::CheckFailed),
            on_timeout: least(on_timeout, GateRule::CheckTimeout),
        };
        let tree = CheckPatterns {
            when: PathGlobs::new(check.when.clone())?,
            files: PathGlobs::new(check.files.clone())?,
            without: PathGlobs::new(check.without.clone())?,
        };
        Ok((check, tree))
    }
}
