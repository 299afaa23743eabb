use proptest::prelude::*;

use super::*;

#[test]
fn every_code_of_the_table_is_a_code_and_stands_there_once() {
    assert!(WORDS.is_sorted_by_key(|(code, _)| *code));
    for (code, words) in WORDS {
        assert_eq!(ItemCode::parse(code).unwrap().words(), Some(*words));
    }
}

proptest! {
    #[test]
    fn any_text_gives_few_sound_codes(text in any::<String>()) {
        let codes = ItemCode::list(&text);
        prop_assert!(codes.len() <= MAX_ITEMS);
        for code in codes {
            prop_assert_eq!(ItemCode::parse(code.as_str()), Some(code));
        }
    }
}
