//! A check as it stands in a policy, and the files that it asks for.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::duration_ms;
use super::globs::Globs;
use crate::drafts::RelPath;
use crate::gate::rule::{Action, Rule};

/// The image of a check that names none.
const USUAL_IMAGE: &str = "python";

/// What is not handed to a check that does not say: what tools make, and make again.
const USUALLY_WITHOUT: &[&str] =
    &["**/target/**", "**/node_modules/**", "**/__pycache__/**", "**/.venv/**"];

/// Whether tools make a file, and make it again: nobody drafts it.
pub fn made_by_tools(path: &RelPath) -> bool {
    static GLOBS: LazyLock<Globs> = LazyLock::new(|| Globs::built_in(USUALLY_WITHOUT));
    GLOBS.has(path)
}

/// A check that runs on the drafted tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub id: String,
    /// Program and arguments.
    pub run: Vec<String>,
    /// Milliseconds it may take.
    pub timeout_ms: u64,
    /// The engine that it asks for, if not the usual one.
    pub sandbox: Option<String>,
    /// The image that it runs in.
    pub image: String,
    /// Paths for which it runs.
    pub when: Vec<String>,
    /// Files that are handed to it.
    pub files: Vec<String>,
    /// Files that are not, though they are among them.
    pub without: Vec<String>,
    /// What a failure leads to, if not what the rule says.
    pub on_fail: Option<Action>,
    /// What a time-out leads to, if not what the rule says.
    pub on_timeout: Option<Action>,
}

/// The patterns of one check.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    when: Globs,
    files: Globs,
    without: Globs,
}

impl Tree {
    pub(super) fn asks(&self, path: &RelPath) -> bool {
        self.when.has(path)
    }

    pub(super) fn has(&self, path: &RelPath) -> bool {
        self.files.has(path) && !self.leaves_out(path)
    }

    pub(super) fn leaves_out(&self, path: &RelPath) -> bool {
        self.without.has(path)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckFile {
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
    on_fail: Option<Action>,
    #[serde(default)]
    on_timeout: Option<Action>,
}

impl CheckFile {
    pub(super) fn read(self) -> Result<(Check, Tree), String> {
        let Self { id, run, timeout, sandbox, image, when, files, without, on_fail, on_timeout } =
            self;
        if id.is_empty() || run.is_empty() {
            return Err("a check needs an `id` and something to `run`".to_owned());
        }
        let timeout_ms = duration_ms(&timeout)
            .ok_or_else(|| format!("check `{id}`: `timeout` is such as \"5m\""))?;
        // A check that a policy asks for and that may fail without consequence is none.
        let least = |action: Option<Action>, rule: Rule| action.map(|said| said.max(rule.floor()));
        let everything = || vec!["**".to_owned()];
        let check = Check {
            id,
            run,
            timeout_ms,
            sandbox,
            image: image.unwrap_or_else(|| USUAL_IMAGE.to_owned()),
            when: when.unwrap_or_else(everything),
            files: files.unwrap_or_else(everything),
            without: without
                .unwrap_or_else(|| USUALLY_WITHOUT.iter().map(|&glob| glob.to_owned()).collect()),
            on_fail: least(on_fail, Rule::CheckFailed),
            on_timeout: least(on_timeout, Rule::CheckTimeout),
        };
        let tree = Tree {
            when: Globs::new(check.when.clone())?,
            files: Globs::new(check.files.clone())?,
            without: Globs::new(check.without.clone())?,
        };
        Ok((check, tree))
    }
}
