use super::Pattern;
use crate::claims::{
    advice, citations, digits, forward, injection, masking, moment, numbers, passages, periods,
    sentences, spelled, units,
};

#[test]
fn every_pattern_compiles() {
    let alone: &[&Pattern] = &[
        &advice::ADVICE,
        &digits::DIGITS,
        &injection::INSTRUCTION,
        &injection::INVISIBLE,
        &masking::CERTAIN,
        &masking::GOES_ON,
        &masking::UNLESS_IT_GOES_ON,
        &numbers::DAYS_METRIC,
        &numbers::FOREIGN,
        &spelled::IN_PARTS,
        &spelled::IN_VERBS,
        &spelled::IN_WORDS,
    ];
    let lists = [
        citations::ALL,
        forward::ALL,
        moment::ALL,
        passages::ALL,
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
