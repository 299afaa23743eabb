//! `moothall gate`: judges real git repositories.

mod attacks;
mod diff_attacks;
mod hook;
mod output;
pub(crate) mod repo;

use self::repo::{Outcome, Repo, SOURCE, lines, token};

/// A name, the expected decision, and a function that changes the repository and returns the
/// arguments of `moothall gate`.
type AttackCase = (&'static str, Outcome, fn(&Repo) -> Vec<&'static str>);

/// Runs a table of cases, each in a repository of its own. Nothing of a repository may run.
#[track_caller]
fn check_all(cases: &[AttackCase]) {
    let mut wrong = Vec::new();
    for (name, expected, build) in cases {
        let repo = Repo::new();
        let arguments = build(&repo);
        let _ = fs_err::remove_file(repo.marker());
        let ran = repo.gate(&arguments);
        let outcome = Outcome::of(&ran);
        if outcome != *expected {
            wrong.push(format!("{name}: {outcome:?}, expected {expected:?}\n{ran}"));
        }
        if repo.marker().exists() {
            wrong.push(format!("{name}: a program of the repository ran"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_harmless_change_is_accepted_in_every_place() {
    let repo = Repo::new();
    assert_eq!(Outcome::of(&repo.gate(&[])), Outcome::Accepted);
    repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
    assert_eq!(Outcome::of(&repo.gate(&["--staged"])), Outcome::Accepted);
    let report = repo.json(&["--worktree"]);
    assert_eq!(report["outcome"], "accepted");
    assert_eq!((&report["stats"]["added"], &report["stats"]["removed"]), (&1.into(), &1.into()));
    assert_eq!(report["files"][0]["path"], "z/a.py");
    repo.stage();
    assert_eq!(repo.json(&["--staged"])["files"][0]["status"], "modified");
    repo.commit("change");
    for range in ["HEAD~1..HEAD", "HEAD~1..", "HEAD~1...HEAD"] {
        assert_eq!(repo.json(&[range])["files"].as_array().unwrap().len(), 1, "{range}");
    }
    assert!(repo.json(&[])["files"].as_array().unwrap().is_empty());
}

#[test]
fn a_bad_change_is_found_in_every_place_with_its_line() {
    let repo = Repo::new();
    repo.write("z/a.py", format!("{SOURCE}key = \"{}\"\n", token()));
    let check = |arguments: &[&str]| {
        let ran = repo.gate(&[arguments, &["--json"]].concat());
        assert_eq!(Outcome::of(&ran), Outcome::Rejected, "{ran}");
        let finding = &ran.json()["files"][0]["findings"][0];
        assert_eq!((&finding["rule"], &finding["line"]), (&"secret.specific".into(), &6.into()));
        assert!(!ran.stdout.contains(&token()), "{ran}");
    };
    check(&["--worktree"]);
    assert_eq!(Outcome::of(&repo.gate(&["--staged"])), Outcome::Accepted);
    repo.stage();
    check(&["--staged"]);
    let patch = repo.git(&["diff", "--cached"]) + "\n";
    fs_err::write(repo.world.path("a.patch"), &patch).unwrap();
    check(&["--patch", "a.patch"]);
    repo.commit("bad");
    check(&["HEAD~1..HEAD"]);
}

#[test]
fn an_example_key_of_documentation_is_accepted_with_a_note() {
    let repo = Repo::new();
    repo.write("z/a.py", format!("{SOURCE}aws_access_key_id = \"AKIAIOSFODNN7EXAMPLE\"\n"));
    let ran = repo.gate(&[]);
    assert_eq!(Outcome::of(&ran), Outcome::Accepted, "{ran}");
    let note = "note: looks like a documentation example: aws-access-key [secret.example]\n";
    assert!(ran.stdout.starts_with(note), "{ran}");
    let findings = repo.json(&[])["files"][0]["findings"].clone();
    let found: Vec<_> = findings.as_array().unwrap().iter().map(|one| &one["rule"]).collect();
    assert_eq!(found, ["secret.example"], "{findings}");
}

#[test]
fn the_policy_of_the_base_judges_and_not_that_of_the_change() {
    let repo = Repo::new();
    let strict = "version = 1\n[paths]\ndeny = [\"z/**\"]\n";
    repo.write(".moothall/policy.toml", strict);
    repo.commit("policy");
    repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
    assert_eq!(Outcome::of(&repo.gate(&[])), Outcome::Rejected);
    // The change takes the policy away: that needs a person, and the file is still rejected.
    repo.write(".moothall/policy.toml", "version = 1\n");
    let report = repo.json(&[]);
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["files"][0]["findings"][0]["rule"], "policy.changed");
    repo.commit("both");
    assert_eq!(repo.json(&["HEAD~1..HEAD"])["outcome"], "rejected");
    // Judged with the new policy as the base, the same file is accepted.
    repo.write("z/a.py", SOURCE.replace("argv", "argv[2:]"));
    assert_eq!(Outcome::of(&repo.gate(&[])), Outcome::Accepted);
}

#[test]
fn a_policy_of_the_user_applies_and_checks_that_do_not_run_need_a_person() {
    let repo = Repo::new();
    repo.world.write_config("policy.toml", "version = 1\n[paths]\nprotect = [\"z/**\"]\n");
    repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
    assert_eq!(Outcome::of(&repo.gate(&[])), Outcome::NeedsPerson);
    let check = "version = 1\n[[check]]\nid = \"tests\"\nrun = [\"true\"]\ntimeout = \"1m\"\n";
    repo.world.write_config("policy.toml", check);
    assert_eq!(Outcome::of(&repo.gate(&[])), Outcome::NeedsPerson);
    assert_eq!(Outcome::of(&repo.gate(&["--skip-checks"])), Outcome::Accepted);
}

#[test]
fn a_patch_is_applied_to_the_base_and_judged_whole() {
    let repo = Repo::new();
    repo.write("z/b.py", lines(30));
    repo.commit("more");
    let patch = |text: &str, more: &[&str]| {
        let all = [&["gate", "--workspace", "ws", "--patch", "-", "--json"], more].concat();
        repo.world.run_with_input(&all, text.as_bytes())
    };
    // Only three lines of the patch show, but the file has conflict markers afterwards.
    repo.write("z/b.py", lines(30).replacen("value_1 =", "value_one =", 1));
    let good = repo.git(&["diff"]) + "\n";
    assert_eq!(Outcome::of(&patch(&good, &[])), Outcome::Accepted);
    assert_eq!(Outcome::of(&patch(&good, &["--base", "HEAD"])), Outcome::Accepted);
    let elsewhere = patch(&good, &["--base", "HEAD~1"]);
    assert_eq!(elsewhere.code, Some(2), "{elsewhere}");
    assert!(elsewhere.stderr.contains("does not apply"), "{elsewhere}");
    for (from, to) in
        [("value_one", "/home/ada"), ("100644", "100755"), ("+value", "+<<<<<<< a\n+")]
    {
        let changed = patch(&good.replace(from, to), &[]);
        assert_ne!(Outcome::of(&changed), Outcome::Accepted, "{from}: {changed}");
    }
    let stray = patch(&format!("{good}-- \n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"), &[]);
    assert_eq!(Outcome::of(&stray), Outcome::Refused, "{stray}");
    repo.git(&["checkout", "--quiet", "."]);
    repo.write("z/c.bin", b"\x7fELF\0\0\xff");
    repo.git(&["add", "--all"]);
    repo.git(&["mv", "z/Makefile", "z/moved"]);
    let binary = repo.git(&["diff", "--cached", "--binary", "-M"]) + "\n";
    let judged = patch(&binary, &[]);
    assert_eq!(Outcome::of(&judged), Outcome::NeedsPerson, "{judged}");
    let rules = judged.stdout;
    assert!(rules.contains("file.rename") && rules.contains("gate.error"), "{rules}");
}

#[test]
fn input_that_cannot_be_judged_is_an_error_with_a_hint() {
    let repo = Repo::new();
    for (arguments, message, hint) in [
        (&["nothing..HEAD"][..], "`nothing` is not a commit", "git log"),
        (&["HEAD"], "`HEAD` is not a range of commits", "A..B"),
        (&["--patch", "missing.patch"], "cannot read the patch", ""),
        (&["--staged", "install"], "`install` does not judge anything", "gate install"),
        (&["--workspace", "/"], "is not in a git repository", "--workspace DIR"),
    ] {
        let ran = match arguments.contains(&"--workspace") {
            true => repo.world.run(&[&["gate"], arguments].concat()),
            false => repo.gate(arguments),
        };
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(message) && ran.stderr.contains(hint), "{ran}");
    }
    repo.write(".moothall/policy.toml", "version = 1\nunknown = 1\n");
    repo.commit("policy");
    let ran = repo.gate(&[]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("workspace policy"), "{ran}");
    repo.remove(".moothall/policy.toml");
    repo.link(".moothall/policy.toml", "../z/a.py");
    repo.commit("policy");
    assert_eq!(repo.gate(&[]).code, Some(2));
}

#[test]
fn a_linked_worktree_and_a_repository_with_sha256_are_judged() {
    let repo = Repo::new();
    repo.git(&["worktree", "add", "--quiet", "../linked"]);
    let linked = repo.world.path("linked");
    fs_err::write(linked.join("z/a.py"), format!("{SOURCE}key = '{}'\n", token())).unwrap();
    let ran = repo.world.run(&["gate", "--workspace", "linked"]);
    assert_eq!(Outcome::of(&ran), Outcome::Rejected, "{ran}");
    let init = ["init", "--quiet", "--object-format=sha256", "../other"];
    repo.git(&init);
    fs_err::write(repo.world.path("other/a.py"), "a = 1\n").unwrap();
    repo.git(&["-C", "../other", "add", "."]);
    repo.git(&["-C", "../other", "commit", "--quiet", "-m", "base"]);
    fs_err::write(repo.world.path("other/a.py"), "a = 2\n").unwrap();
    let ran = repo.world.run(&["gate", "--workspace", "other", "--json"]);
    assert_eq!(ran.json()["files"][0]["path"], "a.py", "{ran}");
    assert_eq!(Outcome::of(&ran), Outcome::Accepted, "{ran}");
}
