//! Judges consecutive versions of published crates, as git diffs. The set depends on the machine;
//! every build of this workspace leaves hundreds. `--nocapture` prints the figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use moothall_core::gate::{CheckResults, GateAction, Policy, PolicyDate};
use moothall_workspace::{GitDiffSelection, GitEnvironment, GitRepository, judge_git_diff};

const TODAY: PolicyDate = PolicyDate { year: 2026, month: 11, day: 15 };
const PAIRS: usize = 30;

/// Two adjacent versions of one crate in cargo's registry.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo"))).unwrap();
    let mut crates: Vec<PathBuf> = Vec::new();
    for registry in fs_err::read_dir(home.join("registry/src")).unwrap() {
        let entries = fs_err::read_dir(registry.unwrap().path()).unwrap();
        crates.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    crates.sort();
    let name = |path: &Path| {
        let whole = path.file_name().unwrap().to_string_lossy().into_owned();
        whole.rsplit_once('-').map(|(name, _)| name.to_owned())
    };
    let beside = crates.windows(2).filter(|two| name(&two[0]) == name(&two[1]));
    beside.map(|two| (two[0].clone(), two[1].clone())).take(PAIRS).collect()
}

/// Commits a directory and returns the commit.
fn commit(repository: &Path, directory: &Path, parent: Option<&str>) -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(arguments)
            .env("GIT_DIR", repository)
            .env("GIT_WORK_TREE", directory)
            .current_dir(directory);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    git(&["add", "--all", "--force", "."]);
    let tree = git(&["write-tree"]);
    let mut arguments = vec!["commit-tree", "-m", "version", &tree];
    arguments.extend(parent.into_iter().flat_map(|parent| ["-p", parent]));
    git(&arguments)
}

#[test]
fn versions_of_crates_are_rarely_rejected_as_git_diffs() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut files, mut rejected) = (0, Vec::new());
    let pairs = pairs();
    for (before, after) in &pairs {
        let folder = tempfile::tempdir().unwrap();
        let init = ["init", "--quiet"];
        assert!(Command::new("git").args(init).arg(folder.path()).status().unwrap().success());
        let own = folder.path().join(".git");
        let base = commit(&own, before, None);
        let head = commit(&own, after, Some(&base));
        let environment = GitEnvironment::of(|name| std::env::var_os(name));
        let repository = GitRepository::discover(folder.path(), &environment).unwrap();
        let selection = GitDiffSelection::Commits {
            base: repository.commit(&base).unwrap(),
            head: repository.commit(&head).unwrap(),
        };
        let mut policy = Policy::built_in();
        // An unoptimized build takes longer.
        policy.limits.gate_timeout_ms = 600_000;
        let looked = CheckResults::default();
        let decision =
            judge_git_diff(&repository, &selection, &policy, Some(&looked), TODAY).unwrap();
        files += decision.files.len();
        *counts.entry(decision.action.as_str()).or_default() += 1;
        for file in decision.files.iter().filter(|file| file.action == GateAction::Reject) {
            let rules: Vec<String> = file
                .findings
                .iter()
                .filter(|one| one.action == GateAction::Reject)
                .map(|one| one.rule.to_string())
                .collect();
            let name = after.file_name().unwrap().to_string_lossy();
            rejected.push(format!("{name}/{}: {rules:?}", file.path));
        }
    }
    println!(
        "{} pairs ({counts:?}), {files} changed files, {} rejected: {rejected:#?}",
        pairs.len(),
        rejected.len()
    );
    assert!(pairs.len() >= 20 && files >= 200, "{files} files are too few; build the workspace");
    assert!(rejected.len() * 20 < files, "{} of {files}: {rejected:#?}", rejected.len());
}
