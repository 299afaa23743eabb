use super::*;

#[test]
fn short_text_is_one_piece() {
    assert_eq!(split_chunks(""), [""]);
    assert_eq!(split_chunks("one\n\ntwo"), ["one\n\ntwo"]);
}

#[test]
fn a_long_text_is_split_between_paragraphs_without_losing_text() {
    let paragraph = format!("{}\n\n", "ä".repeat(500));
    let text = paragraph.repeat(200);
    let pieces = split_chunks(&text);
    assert_eq!(pieces.len(), 4);
    assert!(pieces.iter().all(|piece| piece.len() <= MAX_TEXT_BYTES && piece.ends_with("\n\n")));
    assert_eq!(pieces.concat(), text);
}

#[test]
fn a_too_long_paragraph_is_not_split() {
    let text = "a".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(split_chunks(&text), [text.as_str()]);
}

#[test]
fn claim_support_is_displayed_as_a_sentence() {
    let support = ClaimSupport { supported: 2, assumed: 0, flagged: 1, total: 3 };
    let words = "numbers   2 of 3 supported (66.6%), 0 assumed, 1 flagged";
    assert_eq!(support_line(support), words);
    assert_eq!(support_line(ClaimSupport::default()), "numbers   none found");
}
