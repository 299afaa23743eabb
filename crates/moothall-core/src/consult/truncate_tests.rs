use proptest::prelude::*;

use super::*;

#[test]
fn a_text_that_fits_is_not_touched() {
    assert_eq!(fit("Revenue grew.\nMargins fell.\n", 50), None);
}

#[test]
fn a_truncated_text_keeps_whole_lines_and_says_so() {
    let text = "Revenue grew.\nMargins fell by a little.\n".repeat(40);
    let kept = fit(&text, 40).unwrap();
    assert!(kept.starts_with("Revenue grew.\nMargins fell by a little.\n"), "{kept}");
    assert!(kept.ends_with(".\n[the rest is left out]"), "{kept}");
}

proptest! {
    #[test]
    fn truncated_text_fits_the_token_limit(text in "[ -~\n]{0,600}", tokens in 12_u64..120) {
        if let Some(kept) = fit(&text, tokens) {
            prop_assert!(tokens_expected(&kept) <= tokens, "{} tokens", tokens_expected(&kept));
        }
    }
}
