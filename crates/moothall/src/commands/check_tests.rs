use super::*;

#[test]
fn short_text_is_one_piece() {
    assert_eq!(pieces(""), [""]);
    assert_eq!(pieces("one\n\ntwo"), ["one\n\ntwo"]);
}

#[test]
fn long_text_is_divided_between_paragraphs_and_nothing_is_lost() {
    let paragraph = format!("{}\n\n", "ä".repeat(500));
    let text = paragraph.repeat(200);
    let pieces = pieces(&text);
    assert_eq!(pieces.len(), 4);
    assert!(pieces.iter().all(|piece| piece.len() <= MAX_TEXT_BYTES && piece.ends_with("\n\n")));
    assert_eq!(pieces.concat(), text);
}

#[test]
fn paragraph_that_is_too_long_stays_whole_for_the_checker_to_refuse() {
    let text = "a".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(pieces(&text), [text.as_str()]);
}

#[test]
fn support_is_told_in_words() {
    let support = ClaimSupport { supported: 2, assumed: 0, flagged: 1, total: 3 };
    let words = "numbers   2 of 3 supported (66.6%), 0 assumed, 1 flagged";
    assert_eq!(support_words(support), words);
    assert_eq!(support_words(ClaimSupport::default()), "numbers   none found");
}
