use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, longest: usize, expected: &str) {
    assert_eq!(cleaned(text, longest), expected);
}

#[test]
fn text_is_put_on_one_line_without_hidden_characters() {
    check("  Apple\u{a0}\n\tInc.  ", 50, "Apple Inc.");
    check("\u{1b}[2Jred\u{202e}der\u{200b}", 50, "[2Jredder");
    check("\n \t", 50, "");
}

#[test]
fn text_is_cut_at_a_number_of_characters() {
    check("Züri Ölwerk", 6, "Züri Ö");
    check("Züri Ölwerk", 5, "Züri");
    check("Züri", 0, "");
}

proptest! {
    #[test]
    fn cleaned_text_is_short_and_harmless_and_cleaning_it_again_changes_nothing(
        text in any::<String>(), longest in 0_usize..60
    ) {
        let clean = cleaned(&text, longest);
        prop_assert!(clean.chars().count() <= longest);
        prop_assert!(!clean.chars().any(is_hidden));
        prop_assert_eq!(&cleaned(&clean, longest), &clean);
    }
}
