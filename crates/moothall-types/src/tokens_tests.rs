use proptest::prelude::*;

use super::*;

#[test]
fn prose_has_about_three_and_a_half_to_five_bytes_a_token() {
    let prose = "The company grew its services revenue while hardware sales fell, and the board expects margins to hold. ".repeat(20);
    let expected = tokens_expected(&prose);
    assert!(
        (prose.len() as u64 / 5..=prose.len() as u64 * 2 / 7).contains(&expected),
        "{expected} of {}",
        prose.len()
    );
}

#[test]
fn a_fact_sheet_has_far_more_tokens_than_prose_of_its_length() {
    let row = "| [F0:Revenue:FY2024] | 391,035,000,000 | USD | 2024-09-28 |\n";
    assert!(tokens_expected(row) * 2 > row.len() as u64);
}

#[test]
fn the_token_estimate_weights_bytes_by_their_kind() {
    let expected = |text: &str| tokens_expected(text);
    assert_eq!(expected(&"a".repeat(1000)), 260);
    assert_eq!(expected(&"Z".repeat(1000)), 260);
    assert_eq!(expected(&"7".repeat(1000)), 1000);
    assert_eq!(expected(&" ".repeat(1000)), 30);
    assert_eq!(expected(&"\n".repeat(1000)), 500);
    assert_eq!(expected(&"@[`".repeat(1000)), 2550);
    assert_eq!(expected("éàü"), 2);
    assert_eq!(expected(""), 0);
}

#[test]
fn repeated_characters_are_estimated_as_few_tokens() {
    // Tokenizers merge repeated characters; otherwise the estimate would suggest a truncated
    // prompt.
    assert!(tokens_expected(&"-".repeat(1000)) <= 60);
    assert!(tokens_expected(&"─".repeat(1000)) <= 80);
}

proptest! {
    #[test]
    fn the_expected_count_never_exceeds_the_bound(text in any::<String>()) {
        prop_assert!(tokens_expected(&text) <= tokens_at_most(&text));
    }
}
