use super::ClaimRegex;
use crate::claims::{
    advice, citations, cited_text, digits, forward_looking, injection, masking, number_words,
    numbers, period_cues, periods, sentences, units,
};

#[test]
fn every_pattern_compiles() {
    let alone: &[&ClaimRegex] = &[
        &advice::ADVICE,
        &digits::DIGITS,
        &injection::INSTRUCTION,
        &injection::INVISIBLE,
        &masking::ALWAYS_MASKED,
        &masking::QUANTITY_SUFFIX,
        &masking::MASKED_UNLESS_QUANTITY,
        &numbers::DAYS_METRIC,
        &numbers::FOREIGN,
        &number_words::FRACTION_PHRASES,
        &number_words::MULTIPLE_VERBS,
        &number_words::NUMBER_WORDS,
    ];
    let lists = [
        citations::ALL,
        forward_looking::ALL,
        period_cues::ALL,
        cited_text::ALL,
        periods::ALL,
        sentences::ALL,
        units::ALL,
    ];
    let broken: Vec<&str> = alone
        .iter()
        .chain(lists.into_iter().flatten())
        .filter(|pattern| pattern.regex().is_none())
        .map(|pattern| pattern.text)
        .collect();
    assert_eq!(broken, Vec::<&str>::new());
}
