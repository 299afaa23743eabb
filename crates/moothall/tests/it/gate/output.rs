//! Output formats of `moothall gate`.

use insta::assert_snapshot;

use super::repo::{Repo, SOURCE, token};

/// A repository with a finding of each severity.
fn repo() -> Repo {
    let repo = Repo::new();
    let text = format!("{SOURCE}    open('/etc/hosts')\n    key = \"{}\"\n", token());
    repo.write("z/a.py", text);
    repo.write("z/Makefile", "all: build\n");
    repo
}

#[test]
fn findings_are_shown_as_code_frames_without_credentials() {
    assert_snapshot!(repo().gate(&[]));
}

#[test]
fn findings_are_printed_as_json_annotations_and_junit() {
    let repo = repo();
    assert_snapshot!("github", repo.gate(&["--format", "github"]));
    assert_snapshot!("junit", repo.gate(&["--format", "junit"]));
    let report = repo.json(&[]);
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["base"], repo.git(&["rev-parse", "HEAD"]));
    let files: Vec<&str> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["action"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["escalate", "reject"]);
}

#[test]
fn sarif_has_the_line_of_every_finding() {
    let ran = repo().gate(&["--format", "sarif"]);
    let report = ran.json();
    let results: Vec<(&str, &str, Option<u64>)> = report["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let line = &result["locations"][0]["physicalLocation"]["region"]["startLine"];
            let text = |name: &str| result[name].as_str().unwrap();
            (text("ruleId"), text("level"), line.as_u64())
        })
        .collect();
    assert_eq!(
        results,
        [
            ("path.protected", "warning", None),
            ("path.system", "note", Some(6)),
            ("secret.specific", "error", Some(7)),
        ]
    );
}

/// Attacks 72 and 84: no format prints a credential or a control character of the change.
#[test]
fn no_format_prints_credentials_or_control_characters() {
    let repo = Repo::new();
    let evil = format!("open('/etc/x') # \u{1b}[2J\u{202e}\u{9b} {0}\nk = '{0}'\n", token());
    repo.write("z/a.py", evil);
    repo.write("z/b\u{1b}[31m]]>\"<&.py", "a = 1\n");
    repo.write(&format!("z/{}.md", token()), "a\n");
    for format in ["text", "json", "sarif", "github", "junit"] {
        let ran = repo.gate(&["--format", format]);
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(!ran.stdout.contains(&token()[4..]), "{format}: {ran}");
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.stdout.contains(hidden), "{format}: {ran:?}");
    }
}
