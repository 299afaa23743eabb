use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn version(text: &str) -> Option<FileVersion> {
    Some(FileVersion { text: text.to_owned(), executable: false })
}

fn proposal(base: Option<FileVersion>, after: Option<FileVersion>) -> DraftProposal {
    DraftProposal { path: RelPath::parse("a.txt").unwrap(), rename_to: None, base, after }
}

fn numbered(lines: usize, changed: &[usize]) -> String {
    let line = |at: usize| match changed.contains(&at) {
        true => format!("new {at}\n"),
        false => format!("line {at}\n"),
    };
    (0..lines).map(line).collect()
}

fn chosen(hunks: &[ReviewHunk], numbers: &[usize]) -> BTreeSet<Sha256Hex> {
    numbers.iter().map(|number| hunks[number - 1].id).collect()
}

#[test]
fn approved_hunks_are_applied_and_the_others_keep_the_lines_of_the_file() {
    let base = numbered(40, &[]);
    let draft = proposal(version(&base), version(&numbered(40, &[2, 20, 38])));
    let hunks = draft.hunks();
    assert_eq!(hunks.len(), 3);
    let result = draft.with_hunks(&chosen(&hunks, &[1, 3])).unwrap();
    assert_eq!(result.file, version(&numbered(40, &[2, 38])));
}

#[test]
fn changes_that_are_close_to_each_other_are_one_hunk() {
    let base = numbered(20, &[]);
    let draft = proposal(version(&base), version(&numbered(20, &[4, 9])));
    assert_eq!(draft.hunks().len(), 1);
}

#[test]
fn mode_rename_creation_and_deletion_are_hunks_of_their_own() {
    let script = Some(FileVersion { text: "b\n".to_owned(), executable: true });
    let renamed = DraftProposal {
        rename_to: Some(RelPath::parse("b.txt").unwrap()),
        ..proposal(version("a\n"), script.clone())
    };
    let hunks = renamed.hunks();
    let kinds: Vec<_> = hunks.iter().map(|hunk| hunk.kind.clone()).collect();
    let lines = ReviewHunkKind::Lines(vec![(0..1, 0..1)]);
    assert_eq!(kinds, [ReviewHunkKind::Rename, ReviewHunkKind::Mode, lines]);
    let only_lines = renamed.with_hunks(&chosen(&hunks, &[3])).unwrap();
    assert_eq!(only_lines, HunkResult { rename_to: None, file: version("b\n") });

    let created = proposal(None, script);
    let hunks = created.hunks();
    assert_eq!(created.with_hunks(&chosen(&hunks, &[1])).unwrap().file, version("b\n"));
    // The mode of a file that is not created.
    assert_eq!(created.with_hunks(&chosen(&hunks, &[2])).unwrap().file, None);

    let deleted = proposal(version("a\n"), None);
    let hunks = deleted.hunks();
    assert_eq!(deleted.with_hunks(&BTreeSet::new()).unwrap().file, version("a\n"));
    assert_eq!(deleted.with_hunks(&chosen(&hunks, &[1])).unwrap().file, None);
}

#[test]
fn hunk_of_another_version_is_unknown() {
    let base = numbered(40, &[]);
    let shown = proposal(version(&base), version(&numbered(40, &[2, 38])));
    let later = proposal(version(&base), version(&numbered(40, &[2, 30])));
    let approved = chosen(&shown.hunks(), &[1]);
    assert_eq!(later.with_hunks(&approved), Err(UnknownHunk));
    let moved = DraftProposal { path: RelPath::parse("b.txt").unwrap(), ..shown };
    assert_eq!(moved.with_hunks(&approved), Err(UnknownHunk));
}

#[test]
fn file_with_very_many_changes_is_one_hunk() {
    let changed: Vec<usize> = (0..3_000).step_by(10).collect();
    let draft = proposal(version(&numbered(3_000, &[])), version(&numbered(3_000, &changed)));
    let hunks = draft.hunks();
    assert_eq!(hunks.len(), 1);
    let all = draft.with_hunks(&chosen(&hunks, &[1])).unwrap();
    assert_eq!(all.file, draft.after);
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[a-c]{0,2}\n", "[a-c]\r\n", Just("\u{202e}x\n".to_owned())];
    let lines = prop::collection::vec(line, 0..60);
    (lines, "[ab]{0,2}").prop_map(|(lines, end)| lines.concat() + &end)
}

proptest! {
    /// Every line of a result is from the file or from the draft, all hunks together are the draft,
    /// and no hunk is the file.
    #[test]
    fn any_choice_of_hunks_stays_between_the_file_and_the_draft(
        base in text(), after in text(), choice in any::<u64>(),
    ) {
        let draft = proposal(version(&base), version(&after));
        let hunks = draft.hunks();
        let all = hunks.iter().map(|hunk| hunk.id).collect();
        prop_assert_eq!(draft.with_hunks(&all).unwrap().file, version(&after));
        prop_assert_eq!(draft.with_hunks(&BTreeSet::new()).unwrap().file, version(&base));
        prop_assert_eq!(all.len(), hunks.len());
        let is_chosen = |at: &usize| choice >> (at % 64) & 1 == 1;
        let some: BTreeSet<_> =
            hunks.iter().enumerate().filter(|(at, _)| is_chosen(at)).map(|(_, one)| one.id).collect();
        let result = draft.with_hunks(&some).unwrap().file.unwrap().text;
        let known: BTreeSet<&str> = lines_of(&base).into_iter().chain(lines_of(&after)).collect();
        prop_assert!(lines_of(&result).iter().all(|line| known.contains(line)));
    }
}
