use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(tool: &str, input: &Value, base: Option<&str>, expected: &[(&str, EditPrediction)]) {
    let edits = edits_of(tool, input);
    let applied: Vec<(&str, EditPrediction)> =
        edits.iter().map(|edit| (edit.path.as_str(), edit.apply(base))).collect();
    assert_eq!(applied, expected);
}

fn content(text: &str) -> EditPrediction {
    EditPrediction::Content(text.to_owned())
}

#[test]
fn the_edits_of_each_client_are_read() {
    let base = Some("one\ntwo\ntwo\n");
    let written = json!({ "file_path": "/w/a.py", "content": "x\n" });
    check("Write", &written, base, &[("/w/a.py", content("x\n"))]);
    check("write_file", &written, None, &[("/w/a.py", content("x\n"))]);
    check("write", &json!({ "filePath": "a", "content": "" }), base, &[("a", content(""))]);
    let edit = json!({ "file_path": "a", "old_string": "one", "new_string": "1" });
    check("Edit", &edit, base, &[("a", content("1\ntwo\ntwo\n"))]);
    check("replace", &edit, base, &[("a", content("1\ntwo\ntwo\n"))]);
    let all = json!({ "filePath": "a", "oldString": "two", "newString": "2", "replaceAll": true });
    check("edit", &all, base, &[("a", content("one\n2\n2\n"))]);
    let several = json!({ "file_path": "a", "edits": [
        { "old_string": "one", "new_string": "1" },
        { "old_string": "1", "new_string": "0" },
    ] });
    check("MultiEdit", &several, base, &[("a", content("0\ntwo\ntwo\n"))]);
    let created = json!({ "file_path": "a", "old_string": "", "new_string": "new\n" });
    check("replace", &created, None, &[("a", content("new\n"))]);
    check("Read", &written, base, &[]);
    check("Bash", &json!({ "command": "echo > a" }), base, &[]);
}

#[test]
fn an_edit_that_cannot_be_predicted_has_an_unknown_result() {
    let base = Some("one\n");
    let missing = json!({ "file_path": "a", "old_string": "two", "new_string": "2" });
    check("Edit", &missing, base, &[("a", EditPrediction::Unknown)]);
    check(
        "NotebookEdit",
        &json!({ "notebook_path": "a.ipynb" }),
        base,
        &[("a.ipynb", EditPrediction::Unknown)],
    );
    check("Edit", &json!({ "file_path": "a" }), base, &[("a", EditPrediction::Unknown)]);
}

#[test]
fn a_patch_of_codex_is_read_also_inside_a_shell_command() {
    let patch = "*** Begin Patch\n*** Add File: new.py\n+x = 1\n+\n*** Update File: a.py\n@@ def f():\n \
                 one\n-two\n+2\n@@\n-four\n+4\n*** Delete File: old.py\n*** Update File: from.py\n\
                 *** Move to: to.py\n@@\n-one\n+1\n*** End Patch\n";
    let expected = [
        ("new.py", content("x = 1\n\n")),
        ("a.py", content("one\n2\nthree\n4\n")),
        ("old.py", EditPrediction::Deleted),
        ("to.py", EditPrediction::Unknown),
        ("from.py", EditPrediction::Unknown),
    ];
    let base = Some("one\ntwo\nthree\nfour\n");
    check("apply_patch", &json!({ "command": patch }), base, &expected);
    let shell = format!("apply_patch <<'EOF'\n{patch}EOF\n");
    check("Bash", &json!({ "command": ["bash", "-lc", shell] }), base, &expected);
}

proptest! {
    /// Tool calls are untrusted.
    #[test]
    fn every_tool_call_is_read_without_a_panic(text in any::<String>(), lines in prop::collection::vec(
        "(\\*\\*\\* (Begin Patch|Add File: a|Update File: a|Delete File: a|Move to: b|End of File)|@@|[ +-]?[a-zé]{0,3})", 0..20)) {
        let patch = format!("*** Begin Patch\n{}\n", lines.join("\n"));
        for command in [text, patch] {
            for edit in edits_of("apply_patch", &json!({ "command": command })) {
                let _ = edit.apply(Some("a\nb\n"));
            }
        }
    }
}
