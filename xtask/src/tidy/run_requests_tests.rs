use super::*;
use crate::tidy::headlines;

#[test]
fn stored_forms_workflow_names_and_the_command_line_stay_where_they_belong() {
    let compares = "if row.workflow == NAME {\n";
    let reads = "let spec = StoredSpec::from_columns(name, form);\n";
    let parses = "use crate::args::Cli;\n";
    let tree = SourceTree::of(&[
        (SPEC, "self.workflow == kind.as_str()\nStoredSpec::from_columns(name, form)\n"),
        ("crates/moothall-store/src/rows.rs", reads),
        ("crates/moothall/src/commands/serve.rs", parses),
        ("crates/moothall/src/commands/show_tests.rs", compares),
    ]);
    assert_eq!(headlines(&check(&tree)), Vec::<String>::new());
    let tree = SourceTree::of(&[
        ("crates/moothall-engine/src/record.rs", compares),
        ("crates/moothall/src/commands/serve/desk.rs", parses),
        ("crates/moothall/src/local.rs", reads),
    ]);
    assert_eq!(
        headlines(&check(&tree)),
        [
            "crates/moothall-engine/src/record.rs:1: [run-requests] compares a workflow name",
            "crates/moothall/src/commands/serve/desk.rs:1: [run-requests] uses command-line types to serve HTTP",
            "crates/moothall/src/local.rs:1: [run-requests] reads the stored form of a run",
        ]
    );
}
