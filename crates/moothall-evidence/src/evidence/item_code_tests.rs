use proptest::prelude::*;

use super::*;

#[test]
fn the_item_code_table_is_sorted_unique_and_valid() {
    assert!(ITEM_DESCRIPTIONS.is_sorted_by_key(|(code, _)| *code));
    for (code, words) in ITEM_DESCRIPTIONS {
        assert_eq!(ItemCode::parse(code).unwrap().description(), Some(*words));
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_limited_number_of_valid_item_codes(text in any::<String>()) {
        let codes = ItemCode::list(&text);
        prop_assert!(codes.len() <= MAX_ITEMS);
        for code in codes {
            prop_assert_eq!(ItemCode::parse(code.as_str()), Some(code));
        }
    }
}
