//! Measures how many changes in a project's history are escalated to a person because of their
//! paths alone:
//!
//! ```text
//! git log --no-merges -1000 --format==%h --name-only --diff-filter=AM | moothall-bench escalations
//! ```

use std::io::BufRead as _;

use anyhow::Result;
use moothall_core::drafts::RelPath;
use moothall_core::gate::{
    CheckResults, FileChange, FileContent, FileContext, FingerprintKey, GateAction, GateRule,
    Policy, PolicyDate, judge,
};

use crate::say;

/// First character of a line that starts a commit.
const COMMIT: char = '=';
const TODAY: PolicyDate = PolicyDate { year: 2026, month: 1, day: 1 };

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// Escalated by rules other than those for files that run automatically.
    without: usize,
    with: usize,
}

impl Counts {
    fn count(&mut self, without: bool, with: bool) {
        self.all += 1;
        self.without += usize::from(without);
        self.with += usize::from(with);
    }

    fn shown(&self, what: &str) -> String {
        let percent = |count: usize| 100.0 * count as f64 / self.all.max(1) as f64;
        format!(
            "{} {what}: {:.1} % escalated without the rules about files that run by themselves, {:.1} % with them",
            self.all,
            percent(self.without),
            percent(self.with)
        )
    }
}

pub(crate) fn run() -> Result<()> {
    let (mut files, mut commits) = (Counts::default(), Counts::default());
    let mut commit: Option<(bool, bool)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.starts_with(COMMIT) {
            if let Some((without, with)) = commit.replace((false, false)) {
                commits.count(without, with);
            }
        } else if let Ok(path) = RelPath::parse(&line) {
            let (without, with) = escalated(&path);
            files.count(without, with);
            let totals = commit.get_or_insert_default();
            *totals = (totals.0 || without, totals.1 || with);
        }
    }
    if let Some((without, with)) = commit {
        commits.count(without, with);
    }
    say(&files.shown("changed files"));
    say(&commits.shown("commits"));
    Ok(())
}

/// Whether a change of this path is escalated without and with the rules for files that run
/// automatically.
fn escalated(path: &RelPath) -> (bool, bool) {
    let content = |bytes| Some(FileContent { bytes, executable: false });
    let change = FileChange {
        path,
        rename_to: None,
        base: content(b"a\n"),
        draft: content(b"b\n"),
        around: FileContext::default(),
    };
    let key = FingerprintKey::new([0; 32]);
    let verdict = judge(&Policy::built_in(), &[change], &CheckResults::default(), &key, TODAY);
    let stops = verdict.findings.iter().filter(|one| one.action >= GateAction::Escalate);
    let of_path = |rule| {
        matches!(rule, GateRule::PathAutorun | GateRule::PathIgnored | GateRule::FileGitRepository)
    };
    (stops.clone().any(|one| !of_path(one.rule)), stops.count() > 0)
}
