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
    assert_snapshot!(repo().gate(&[]), @r###"
$ moothall gate --workspace ws
exit code: 1
----- stdout -----
note: path in a system directory [path.system]
 --> z/a.py:6:5
  |
6 |     open('/etc/hosts')
  |     ^^^^^^^^^^^^^^^^^^

warning: protected path [path.protected]
--> z/Makefile

error: credential: github-token [secret.specific]
--> z/a.py:7

rejected: 2 files, +3 -1
----- stderr -----
"###);
}

#[test]
fn findings_are_printed_as_json_annotations_and_junit() {
    let repo = repo();
    assert_snapshot!(repo.gate(&["--format", "github"]), @r###"
$ moothall gate --workspace ws --format github
exit code: 1
----- stdout -----
::warning file=z/Makefile,title=path.protected::protected path [path.protected]
::notice file=z/a.py,line=6,col=5,endLine=6,endColumn=23,title=path.system::path in a system directory [path.system]
::error file=z/a.py,line=7,col=1,endLine=7,endColumn=1,title=secret.specific::credential: github-token [secret.specific]
rejected: 2 files, +3 -1
----- stderr -----
"###);
    assert_snapshot!(repo.gate(&["--format", "junit"]), @r###"
$ moothall gate --workspace ws --format junit
exit code: 1
----- stdout -----
<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="moothall gate" tests="3" failures="2" errors="0">
    <testcase classname="moothall.gate" name="(whole change)"/>
    <testcase classname="moothall.gate" name="z/Makefile">
      <failure type="escalate" message="needs a person">escalate z/Makefile: protected path [path.protected]
</failure>
    </testcase>
    <testcase classname="moothall.gate" name="z/a.py">
      <failure type="reject" message="rejected">warn z/a.py:6: path in a system directory [path.system]
reject z/a.py:7: credential: github-token [secret.specific]
</failure>
    </testcase>
  </testsuite>
</testsuites>
----- stderr -----
"###);
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
fn sarif_is_valid_and_has_the_line_of_every_finding() {
    let ran = repo().gate(&["--format", "sarif"]);
    let report = ran.json();
    // The schema of OASIS, without its descriptions and with one bracket escaped in a pattern.
    let schema = include_str!("../../fixtures/sarif-2.1.0.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> =
        validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(problems, Vec::<String>::new());
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
