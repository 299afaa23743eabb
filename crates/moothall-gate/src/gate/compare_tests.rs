use super::super::tests::worked;
use super::*;

#[test]
fn changes_of_different_lines_are_merged() {
    let base = "a\nb\nc\nd\ne\n";
    let merged = merge(base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
    assert_eq!(merged, ("A\nb\nc\nd\nE\n".to_owned(), true));
}

#[test]
fn conflicting_changes_to_one_line_are_both_shown() {
    let (text, clean) = merge("a\n", "b\n", "c\n");
    assert!(!clean);
    assert!(text.contains("<<<<<<< draft\nb\n") && text.contains("c\n>>>>>>> workspace"), "{text}");
}

#[test]
fn line_counts_of_several_files_are_added() {
    let mut sum = LineStats { added: 1, removed: 2, moved: 3, base_lines: 4 };
    sum.add(&LineStats { added: 50, removed: 60, moved: 70, base_lines: 80 });
    assert_eq!(sum, LineStats { added: 51, removed: 62, moved: 73, base_lines: 84 });
}

#[test]
fn moved_lines_are_neither_lost_nor_new() {
    let compared = FileComparison::of_texts("a\nb\nc\n", "c\na\nb\nd\n");
    let expected = FileComparison {
        stats: LineStats { added: 2, removed: 1, moved: 1, base_lines: 3 },
        added: vec![(4, "d".to_owned())],
        removed: Vec::new(),
        gave_up: false,
    };
    assert_eq!(compared, expected);
    let copied = FileComparison::of_texts("x\nb\nc\nd\n", "b\nc\nd\nx\nx\n");
    let expected = FileComparison {
        stats: LineStats { added: 2, removed: 1, moved: 1, base_lines: 4 },
        added: vec![(5, "x".to_owned())],
        removed: Vec::new(),
        gave_up: false,
    };
    assert_eq!(copied, expected);
}

#[test]
fn hard_to_compare_files_are_compared_within_the_time_limit() {
    let text = |seed: u64| {
        let mut state = seed;
        let mut bit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 63
        };
        (0..50_000).map(|_| format!("{}\n", bit())).collect::<String>()
    };
    let distinct =
        |from: usize| (from..from + 20_000).map(|at| format!("{at}\n")).collect::<String>();
    let begun = worked();
    let compared = FileComparison::of_texts(&text(1), &text(2));
    assert!(compared.stats.added > 0 && !compared.gave_up);
    assert_eq!(FileComparison::of_texts(&distinct(0), &distinct(20_000)).stats.moved, 0);
    // The built-in policy gives the gate ten seconds.
    let took = worked() - begun;
    assert!(took.as_secs() < 10, "{took:?}");
}

#[test]
fn files_are_compared_up_to_exactly_the_limits() {
    let lines = |count: usize| vec!["same"; count];
    let (most, more) = (lines(60_000), lines(60_001));
    assert!(!is_too_much(&most, &most));
    assert!(is_too_much(&more, &[]) && is_too_much(&[], &more));
    // Two files of 10,000 lines; all lines times those of only one file.
    let file = |own: usize, name| [lines(10_000 - own), vec![name; own]].concat();
    assert!(!is_too_much(&file(2_500, "old"), &file(2_500, "new")));
    assert!(is_too_much(&file(2_501, "old"), &file(2_501, "new")));
    // Without a shared line.
    assert!(!is_too_much(&most, &vec!["other"; 60_000]));
}
