use super::*;
use crate::gate::{PolicyLayer, PolicyLayerName};

const TODAY: PolicyDate = PolicyDate { year: 2026, month: 11, day: 15 };

fn file(text: &str) -> Option<FileEntry> {
    Some(FileEntry::file(text, false))
}

fn judged(change: &ChangedFile) -> FileDecision {
    let key = FingerprintKey::new([1; 32]);
    judge_changed_file(&Policy::built_in(), change, &key, TODAY, &AtomicBool::new(false))
}

#[track_caller]
fn check(change: &ChangedFile, action: GateAction, rules: &[&str]) {
    let decision = judged(change);
    let found: Vec<&str> = decision.findings.iter().map(|one| one.rule.name()).collect();
    assert_eq!((decision.action, found), (action, rules.to_vec()), "{decision:?}");
}

fn renamed(from: &str, to: &str) -> ChangedFile {
    let plain = ChangedFile::new(to, file("a = 1\n"), file("a = 1\n"));
    ChangedFile { renamed_from: Some(from.into()), ..plain }
}

/// A fake credential, generated here so that none is in the repository.
fn token() -> String {
    let digest = Sha256Hex::of(b"a token of nobody").to_string();
    format!("ghp_{}", &digest[..36])
}

#[test]
fn a_changed_file_is_judged_like_a_draft() {
    let edit = |draft: &str| ChangedFile::new("src/a.py", file("a = 1\n"), file(draft));
    check(&edit("a = 2\n"), GateAction::Allow, &[]);
    check(&edit("a = 2\nopen('/etc/hosts')\n"), GateAction::Warn, &["path.system"]);
    check(&edit(&format!("key = \"{}\"\n", token())), GateAction::Reject, &["secret.specific"]);
    check(&ChangedFile::new("a.py", file("a\n"), None), GateAction::Escalate, &["file.delete"]);
    let made = ChangedFile::new("a.sh", None, Some(FileEntry::file("echo\n", true)));
    check(&made, GateAction::Escalate, &["file.new_executable"]);
    let mode = ChangedFile::new("a.py", file("a\n"), Some(FileEntry::file("a\n", true)));
    check(&mode, GateAction::Escalate, &["file.mode"]);
}

#[test]
fn a_decision_says_what_happened_to_its_file() {
    let status = |old: &str, new: &str| {
        let entry = |text: &str| if text.is_empty() { None } else { file(text) };
        judged(&ChangedFile::new("a.py", entry(old), entry(new))).status
    };
    assert_eq!(status("", "a\n"), FileStatus::Added);
    assert_eq!(status("a\n", ""), FileStatus::Deleted);
    assert_eq!(status("a\n", "b\n"), FileStatus::Modified);
    assert_eq!(judged(&renamed("a.py", "b.py")).status, FileStatus::Renamed);
}

#[test]
fn both_paths_of_a_rename_are_judged() {
    check(&renamed("a.py", "b.py"), GateAction::Escalate, &["file.rename"]);
    let rules = ["path.protected", "file.rename"];
    check(&renamed("Makefile", "b.py"), GateAction::Escalate, &rules);
    check(&renamed("a.py", "Makefile"), GateAction::Escalate, &rules);
    let rules = ["path.invalid", "file.rename"];
    check(&renamed("a.py", ".git/hooks/pre-commit"), GateAction::Reject, &rules);
}

#[test]
fn paths_that_a_draft_cannot_have_are_rejected() {
    let long = "x".repeat(256);
    for path in [
        "../x",
        "a/../../x",
        "/etc/x",
        "a//b",
        "a/./b",
        "a/b/",
        "",
        ".git/config",
        ".GIT/config",
        "sub/.git/config",
        "a\nb",
        "a\u{202e}b",
        "a\u{200c}.py",
        "x:ads",
        "x.",
        "x ",
        "a\\b",
        ".hg/hgrc",
        "sub/.moothall/policy.toml",
        ".Moothall/policy.toml",
        long.as_str(),
    ] {
        let decision = judged(&ChangedFile::new(path, None, file("a = 1\n")));
        assert_eq!(decision.action, GateAction::Reject, "{path}");
    }
    let decision = judged(&ChangedFile::new(b"a\xff.py".to_vec(), None, file("a = 1\n")));
    assert_eq!((decision.action, decision.path.as_str()), (GateAction::Reject, "a\u{fffd}.py"));
    check(&ChangedFile::new("a..b", None, file("a\n")), GateAction::Allow, &[]);
}

#[test]
fn what_the_policy_allows_is_no_finding_in_a_file_with_an_invalid_path() {
    let text = "version = 1\n[rules]\n\"path.system\" = \"allow\"".to_owned();
    let policy = Policy::of(&[PolicyLayer::new(PolicyLayerName::Organisation, text)]).unwrap();
    let change = ChangedFile::new("a//b", None, file("open('/etc/hosts')\n"));
    let (key, stop) = (FingerprintKey::new([1; 32]), AtomicBool::new(false));
    let rules = |policy: &Policy| -> Vec<GateRule> {
        let decision = judge_changed_file(policy, &change, &key, TODAY, &stop);
        decision.findings.iter().map(|one| one.rule).collect()
    };
    assert_eq!(rules(&Policy::built_in()), [GateRule::PathInvalid, GateRule::PathSystem]);
    assert_eq!(rules(&policy), [GateRule::PathInvalid]);
}

#[test]
fn a_change_of_the_policy_needs_a_person_and_its_content_is_judged() {
    for path in [".moothall/policy.toml", "moothall.toml", "sub/moothall.toml"] {
        let change = ChangedFile::new(path, file("version = 1\n"), file("version = 1\n# b\n"));
        check(&change, GateAction::Escalate, &["policy.changed"]);
    }
    let contract = ChangedFile::new("_handoff/TASK_CONTRACT.json", None, file("{}\n"));
    check(&contract, GateAction::Escalate, &["policy.changed"]);
    let secret = format!("version = 1\n# {}\n", token());
    let change = ChangedFile::new(".moothall/policy.toml", file("version = 1\n"), file(&secret));
    check(&change, GateAction::Reject, &["policy.changed", "secret.specific"]);
    let rules = ["policy.changed", "file.rename"];
    check(&renamed(".moothall/policy.toml", "b.toml"), GateAction::Escalate, &rules);
}

#[test]
fn a_link_needs_a_person_and_one_that_leaves_the_repository_is_rejected() {
    let link = |target: &str| Some(FileEntry::link(target));
    let new = |target: &str| ChangedFile::new("docs/a", None, link(target));
    for target in ["b.md", "../README.md", "../src/a", "c/d"] {
        check(&new(target), GateAction::Escalate, &["file.link"]);
    }
    for target in [
        "/etc/passwd",
        "../../x",
        "..",
        "../.git/config",
        "../.GIT/x",
        "b/../../../x",
        "b/../c",
        "",
        "a\0b",
        "C:\\x",
    ] {
        let expected = if target == ".." { GateAction::Escalate } else { GateAction::Reject };
        assert_eq!(judged(&new(target)).action, expected, "{target:?}");
    }
    let replaced = ChangedFile::new("a.py", file("a\n"), link("b.py"));
    check(&replaced, GateAction::Escalate, &["file.link", "file.delete"]);
    check(
        &ChangedFile::new("a", link("b"), None),
        GateAction::Escalate,
        &["file.link", "file.delete"],
    );
}

#[test]
fn what_was_not_read_needs_a_person() {
    let with = |kind, content| Some(FileEntry { kind, content });
    let large = with(EntryKind::File, EntryContent::TooLarge(1 << 30));
    let rule = ["content.too_large"];
    check(&ChangedFile::new("a.bin", None, large.clone()), GateAction::Escalate, &rule);
    check(&ChangedFile::new("a.bin", large.clone(), file("a\n")), GateAction::Escalate, &rule);
    check(&ChangedFile::new("a.bin", large, None), GateAction::Escalate, &["file.delete"]);
    let gone = with(EntryKind::File, EntryContent::Unreadable);
    check(&ChangedFile::new("a.py", None, gone), GateAction::Escalate, &["gate.error"]);
    let commit = with(EntryKind::Submodule, EntryContent::Bytes(b"0".repeat(40)));
    check(&ChangedFile::new("lib", None, commit), GateAction::Escalate, &["file.submodule"]);
    let device = with(EntryKind::Other, EntryContent::Unreadable);
    check(&ChangedFile::new("a", None, device), GateAction::Escalate, &["gate.error"]);
}

#[test]
fn a_git_lfs_pointer_needs_a_person() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let change = ChangedFile::new("a.psd", None, file(pointer));
    check(&change, GateAction::Escalate, &["content.lfs_pointer"]);
}

#[test]
fn credentials_are_shown_neither_in_paths_nor_in_lines() {
    let token = token();
    let path = format!("notes-{token}.md");
    let line = format!("open('/etc/hosts')  # {token}\n");
    let decision = judged(&ChangedFile::new(path.as_str(), None, file(&line)));
    assert_eq!(decision.action, GateAction::Reject);
    let shown = format!("{decision:?} {}", serde_json::to_string(&decision).unwrap());
    let places = decision.places.iter().map(|place| format!("{place:?}"));
    let shown = places.fold(shown, |shown, place| shown.replace(&place, ""));
    assert!(!shown.contains(&token[8..20]), "{shown}");
    let plain = judged(&ChangedFile::new("a.py", file("a\n"), file("a\nopen('/etc/hosts')\n")));
    assert_eq!(plain.findings[0].source.as_deref(), Some("open('/etc/hosts')"));
}

#[test]
fn names_that_collide_on_some_file_systems_are_found() {
    let mut names = TreeNames::default();
    for path in ["src/Main.rs", "docs/a.md", "straße/x", "caf\u{e9}.md"] {
        names.add(path);
    }
    assert_eq!(names.twins("src/main.rs"), ["src/Main.rs"]);
    assert_eq!(names.twins("SRC/lib.rs"), ["src"]);
    assert_eq!(names.twins("cafe\u{301}.md"), ["caf\u{e9}.md"]);
    assert!(names.twins("src/Main.rs").is_empty());
    assert!(!names.is_below_head("docs/objects/x"));
    names.add("docs/HEAD");
    assert!(names.is_below_head("docs/objects/x"));
    assert!(!names.is_below_head("src/lib.rs"));
    let name = "cafe\u{301}.md";
    let rename = ChangedFile {
        renamed_from: Some("a.md".into()),
        ..ChangedFile::new(name, file("a\n"), file("a\n"))
    };
    check(&rename, GateAction::Escalate, &["path.twin", "file.rename"]);
    check(&ChangedFile::new(name, None, file("a\n")), GateAction::Escalate, &["path.twin"]);
    check(&ChangedFile::new(name, file("a\n"), file("b\n")), GateAction::Allow, &[]);
    let twin = ChangedFile {
        twins: names.twins("src/main.rs"),
        ..ChangedFile::new("src/main.rs", None, file("a\n"))
    };
    check(&twin, GateAction::Escalate, &["path.twin"]);
    let below =
        ChangedFile { below_head: true, ..ChangedFile::new("docs/objects/x", None, file("a\n")) };
    check(&below, GateAction::Escalate, &["file.git_repository"]);
}

#[test]
fn the_decision_on_a_change_set_is_the_most_severe_one() {
    let policy = Policy::built_in();
    let decide = |files: Vec<FileDecision>, unread| {
        let decision =
            decide_change_set(&policy, files, unread, Some(&CheckResults::default()), TODAY);
        let rules: Vec<&str> = decision.findings.iter().map(|one| one.rule.name()).collect();
        (decision.action, rules)
    };
    let good = judged(&ChangedFile::new("a.py", file("a\n"), file("b\n")));
    let bad = judged(&ChangedFile::new("../x", None, file("b\n")));
    assert_eq!(decide(Vec::new(), 0), (GateAction::Allow, vec![]));
    assert_eq!(decide(vec![good.clone()], 0), (GateAction::Allow, vec![]));
    assert_eq!(decide(vec![good.clone(), bad], 0), (GateAction::Reject, vec![]));
    assert_eq!(decide(vec![good.clone()], 3), (GateAction::Escalate, vec!["gate.error"]));
    assert_eq!(decide(vec![good; 21], 0), (GateAction::Escalate, vec!["diff.max_files"]));
    let lines: String = (0..401).map(|at| format!("a{at} = {at}\n")).collect();
    let many = judged(&ChangedFile::new("a.py", None, file(&lines)));
    assert_eq!(decide(vec![many], 0), (GateAction::Escalate, vec!["diff.max_lines"]));
}

#[test]
fn checks_that_did_not_run_need_a_person_unless_they_run_elsewhere() {
    let text = "version = 1\n[[check]]\nid = \"tests\"\nrun = [\"make\"]\ntimeout = \"1m\"\n";
    let layer = PolicyLayer::new(PolicyLayerName::Workspace, text.to_owned());
    let policy = Policy::of(&[layer]).unwrap();
    let files = || vec![judged(&ChangedFile::new("a.py", file("a\n"), file("b\n")))];
    let looked = CheckResults::default();
    let strict = decide_change_set(&policy, files(), 0, Some(&looked), TODAY);
    assert_eq!(strict.action, GateAction::Escalate);
    let elsewhere = decide_change_set(&policy, files(), 0, None, TODAY);
    assert_eq!(elsewhere.action, GateAction::Allow);
}

#[test]
fn a_version_that_was_replaced_keeps_only_its_credentials() {
    let text = format!("open('/etc/hosts')\nkey = \"{}\"\n", token());
    let decision = judged(&ChangedFile::new("src/a.py", file("a = 1\n"), file(&text)));
    assert_eq!(decision.findings.len(), 2, "{decision:?}");
    let kept = decision.of_earlier_commit("abc123").unwrap();
    let [finding] = &kept.findings[..] else { panic!("{kept:?}") };
    assert_eq!((finding.rule.name(), finding.line), ("secret.specific", None));
    assert!(finding.message.ends_with(" (in commit abc123)"), "{finding:?}");
    assert_eq!((kept.action, kept.stats), (GateAction::Reject, LineStats::default()));
    let text = "db_password = \"q9Xv2LmT8pRw4ZkB7nYc\"\n# \u{202e}\n";
    let worse = judged(&ChangedFile::new("src/a.py", file("a = 1\n"), file(text)));
    let kept = worse.clone().of_earlier_commit("abc123").unwrap();
    assert_eq!((worse.action, kept.action), (GateAction::Reject, GateAction::Escalate));
    let harmless = judged(&ChangedFile::new("src/a.py", file("a = 1\n"), file("a = 2\n")));
    assert_eq!(harmless.of_earlier_commit("abc123"), None);
}

#[test]
fn one_selector_of_an_emoji_is_not_an_invisible_character() {
    let rules = |line: &str| -> Vec<&str> {
        let text = format!("a\n{line}\n");
        let decision = judged(&ChangedFile::new("a.md", file("a\n"), file(&text)));
        decision.findings.iter().map(|one| one.rule.name()).collect()
    };
    for sign in ["\u{a9}", "\u{ae}", "#", "*", "7", "\u{2764}"] {
        assert_eq!(rules(&format!("{sign}\u{fe0f}")), [""; 0], "{sign}");
        assert_eq!(rules(&format!("{sign}\u{fe0f}\u{fe0f}")), ["content.invisible"], "{sign}");
    }
    assert_eq!(rules("a\u{fe0f}"), ["content.invisible"]);
    assert_eq!(rules("\u{fe0f}"), ["content.invisible"]);
    assert_eq!(rules("\u{2000}\u{fe0f}"), ["content.invisible"]);
}
