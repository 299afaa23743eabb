use super::{CitedText, NumberMention, find_mention, misquoted};
use crate::claims::numbers::numbers;
use crate::claims::support_tests::PASSAGE;

#[track_caller]
fn check(text: &str, sentence: &str, expected: NumberMention) {
    let number = &numbers(sentence)[0];
    assert_eq!(find_mention(&[CitedText::new(text)], number), expected, "{sentence}");
}

#[test]
fn a_number_must_appear_in_the_cited_passage() {
    check(PASSAGE, "It employs 4,200 people", NumberMention::Yes);
    check(PASSAGE, "It employs 4.2 thousand people", NumberMention::Yes);
    check(PASSAGE, "It employs 4,300 people", NumberMention::No);
    check(PASSAGE, "One customer is 18% of sales", NumberMention::Yes);
    check(PASSAGE, "One customer is 18 bps of sales", NumberMention::No);
    check(PASSAGE, "One customer spends $18", NumberMention::No);
    check(PASSAGE, "It employs 4,200% more people", NumberMention::No);
    check(PASSAGE, "Prices fell 3.5%", NumberMention::Yes);
    check(PASSAGE, "Prices rose 3.5%", NumberMention::OtherDirection);
}

#[test]
fn tables_print_amounts_without_their_scale() {
    let table = "Net sales (in millions): $416,161 and $391,035";
    check(table, "Net sales were $416.2 billion", NumberMention::Yes);
    check("Net sales: $416,161", "Net sales were $416.2 billion", NumberMention::No);
}

#[test]
fn the_same_number_in_another_currency_does_not_match() {
    check("A fine of €500 million", "A fine of €500 million", NumberMention::Yes);
    check("A fine of €500 million", "A fine of $500 million", NumberMention::No);
    check("A fine of US$500 million", "A fine of $500 million", NumberMention::Yes);
}

#[track_caller]
fn check_quotes(sentence: &str, expected: &[&str]) {
    assert_eq!(misquoted([CitedText::new(PASSAGE)].iter(), sentence), expected, "{sentence}");
}

#[test]
fn a_quotation_must_appear_verbatim_in_the_cited_passage() {
    check_quotes("It warns that it “may not be able to pass higher costs on.”", &[]);
    check_quotes("It says \"we may not   be able to pass\nhigher costs\"", &[]);
    check_quotes("It says “our largest customer … prices fell 3.5%”", &[]);
    check_quotes(
        "It says “prices fell … our largest customer”",
        &["prices fell … our largest customer"],
    );
    check_quotes("It says “will not be able to pass”", &["will not be able to pass"]);
    check_quotes("It says “Prices fell 3.5%” and “we employ approximately 4,200 people”", &[]);
    check_quotes("It says “prIces fell 3.5%”", &["prIces fell 3.5%"]);
    check_quotes("It says nothing", &[]);
}
