use proptest::prelude::*;

use super::*;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn whole(name: &str, text: &str) -> ProposedFile {
    ProposedFile { path: path(name), what: FileProposal::Whole(text.to_owned()) }
}

#[test]
fn fenced_blocks_name_their_file_in_the_fence_or_before_it() {
    let text = "Here it is:\n\n```python src/a.py\na = 1\n```\n\nAnd `src/b.py`:\n\n```python\nb = 1\n```\n";
    let expected = vec![whole("src/a.py", "a = 1\n"), whole("src/b.py", "b = 1\n")];
    assert_eq!(read_answer(text, None), Ok(expected));
}

#[test]
fn a_single_unnamed_block_is_imported_as_the_requested_file() {
    let text = "Sure.\n```\na = 1\n```\n";
    assert_eq!(read_answer(text, Some(&path("a.py"))), Ok(vec![whole("a.py", "a = 1\n")]));
    assert_eq!(read_answer(text, None), Err(ImportFault::Unnamed(2)));
    let two = format!("{text}{text}");
    assert_eq!(read_answer(&two, Some(&path("a.py"))), Err(ImportFault::Unnamed(2)));
}

#[test]
fn a_hunk_is_applied_at_its_line_or_the_only_matching_place() {
    let text = "```diff\n--- a/x.py\n+++ b/x.py\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n```\n";
    let read = read_answer(text, None).unwrap();
    let FileProposal::Hunks(hunks) = &read[0].what else { panic!() };
    assert_eq!(apply_hunks("a\nb\nc\nd\n", hunks).unwrap(), "a\nb\nC\nd\n");
    assert_eq!(apply_hunks("x\ny\na\nb\nc\nd\n", hunks).unwrap(), "x\ny\na\nb\nC\nd\n");
    assert_eq!(apply_hunks("b\nc\nd\nb\nc\nd\n", hunks), Err(ImportFault::Fit(2)));
    assert_eq!(apply_hunks("b\nx\nd\n", hunks), Err(ImportFault::Fit(2)));
}

#[test]
fn a_diff_makes_and_deletes_files() {
    let text = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+a\n+b\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let read = read_answer(text, None).unwrap();
    let FileProposal::Hunks(hunks) = &read[0].what else { panic!() };
    assert_eq!(apply_hunks("", hunks).unwrap(), "a\nb\n");
    assert_eq!(read[1], ProposedFile { path: path("old.py"), what: FileProposal::Delete });
}

#[test]
fn a_diff_keeps_a_missing_final_newline() {
    let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
    let read = read_answer(text, None).unwrap();
    let FileProposal::Hunks(hunks) = &read[0].what else { panic!() };
    assert_eq!(apply_hunks("a", hunks).unwrap(), "b");
}

#[test]
fn answers_with_unsafe_paths_or_without_files_are_refused() {
    let fault = |text: &str| read_answer(text, None).unwrap_err();
    assert_eq!(fault("no file here"), ImportFault::Nothing);
    assert_eq!(fault("```a.py\nx"), ImportFault::Unended(1));
    let climbing = "--- a/x\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(fault(climbing), ImportFault::Path { line: 1, fault: PathFault::Name });
    let twice = "```a.py\nx\n```\n```a.py\ny\n```\n";
    assert_eq!(fault(twice), ImportFault::Twice(path("a.py")));
}

#[test]
fn an_invalid_diff_is_refused_with_its_line_and_the_reason() {
    let file = "--- a/x\n+++ b/x\n";
    let cases = [
        ("@@ -1 +1 @@\n-a\n+b\n".to_owned(), 1, DiffFault::NoFile),
        (format!("{file}text\n{file}@@ -1 +1 @@\n-a\n+b\n"), 2, DiffFault::NoHunk),
        (format!("{file}@@ -1,9 +1 @@\n-a\n"), 4, DiffFault::LineCounts),
        (format!("{file}@@ -1 +1 @@\n-a\n-b\n"), 5, DiffFault::LineCounts),
        (format!("{file}@@ -1,2 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n"), 6, DiffFault::LineCounts),
        (format!("```diff\n{file}@@ -1,2 +1 @@\n-a\n+b\n```\n"), 7, DiffFault::LineCounts),
        (format!("{file}@@ -1 +1 @@\na\n+b\n"), 4, DiffFault::LineMark),
        (format!("{file}@@ -1 +1 @@\nü\n+b\n"), 4, DiffFault::LineMark),
    ];
    for (text, line, fault) in cases {
        assert_eq!(read_answer(&text, None), Err(ImportFault::Diff { line, fault }), "{text}");
    }
}

/// The text for models is part of requests whose hashes stored runs contain.
#[test]
fn import_errors_keep_a_stable_text_for_model_requests() {
    let fault = ImportFault::Diff { line: 4, fault: DiffFault::LineMark };
    assert_eq!(fault.to_string(), "line 4: the diff cannot be read");
    assert_eq!(
        fault.message(),
        "line 4: a line of a hunk must start with a space, `+`, `-` or `\\`"
    );
    assert_eq!(ImportFault::Long.message(), ImportFault::Long.to_string());
}

proptest! {
    #[test]
    fn a_printed_diff_can_be_imported_again(
        base in "([abc]\n){0,12}",
        draft in "([abcd]\n){0,12}",
    ) {
        prop_assume!(base != draft);
        let printed = crate::gate::unified("x.py", &base, &draft);
        let read = read_answer(&printed, None).unwrap();
        let FileProposal::Hunks(hunks) = &read[0].what else { panic!() };
        prop_assert_eq!(apply_hunks(&base, hunks).unwrap(), draft);
    }

    #[test]
    fn any_answer_is_imported_without_a_panic(text in "[ab`@+\\- \n,0-9/.]{0,80}", base in "([ab]\n){0,5}") {
        if let Ok(read) = read_answer(&text, None) {
            for one in read {
                if let FileProposal::Hunks(hunks) = one.what {
                    let _ = apply_hunks(&base, &hunks);
                }
            }
        }
    }
}
