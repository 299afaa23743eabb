use super::{CandidateAgreement, NumberCloseness, agreement};
use crate::claims::candidates::{ValueCandidate, of_facts};
use crate::claims::numbers::numbers;
use crate::claims::support_tests::{facts, index, sheet};

/// Compares the number in `words` with the best candidate of the facts: near, truncated, wrong
/// sign, or none.
#[track_caller]
fn check(ids: &[&str], words: &str, expected: &str) {
    let sheet = sheet();
    let index = index(&sheet);
    let candidates = of_facts(&facts(&index, ids));
    let number = &numbers(words)[0];
    let best = candidates
        .iter()
        .filter_map(|known: &ValueCandidate<'_>| agreement(number, known, "USD"))
        .max_by_key(|agreement| (agreement.sign_is_right, agreement.closeness));
    let said = match best {
        None => "no",
        Some(CandidateAgreement { sign_is_right: false, .. }) => "other sign",
        Some(CandidateAgreement { closeness: NumberCloseness::LastDigit, .. }) => "cut",
        Some(CandidateAgreement { closeness: NumberCloseness::Printed, .. }) => "yes",
    };
    assert_eq!(said, expected, "{words}");
}

#[test]
fn the_printed_digits_determine_the_tolerance() {
    let capex = &["Capex:FY2025"];
    for (words, expected) in [
        ("$48.7 million", "yes"),
        ("$49 million", "yes"),
        ("$48 million", "cut"),
        ("$48.6 million", "no"),
        ("$48.8 million", "no"),
        ("$47 million", "no"),
        ("$0.05 billion", "yes"),
        ("48.7 million", "yes"),
        ("€48.7 million", "no"),
        ("48.7%", "no"),
    ] {
        check(capex, words, expected);
    }
}

#[test]
fn comparators_widen_on_their_side() {
    let capex = &["Capex:FY2025"];
    for (words, expected) in [
        ("about $50 million", "yes"),
        ("about $47 million", "no"),
        ("over $48 million", "yes"),
        ("over $49 million", "yes"),
        ("over $50 million", "no"),
        ("over $40 million", "no"),
        ("under $50 million", "yes"),
        ("under $48 million", "no"),
        ("nearly $50 million", "yes"),
        ("nearly $48 million", "no"),
        ("$45+ million", "yes"),
    ] {
        check(capex, words, expected);
    }
}

#[test]
fn computed_values_inherit_the_rounding_of_their_inputs() {
    let revenue = &["Revenue:FY2025", "Revenue:FY2024"];
    check(revenue, "grew 25.1%", "yes");
    check(revenue, "grew 25.2%", "no");
    check(&["Revenue.yoy:FY2025"], "grew 25.1%", "no");
    check(&["GrossMargin:FY2025", "GrossMargin:FY2024"], "widened 74 bps", "yes");
    check(&["GrossMargin:FY2025", "GrossMargin:FY2024"], "widened 76 bps", "no");
}

#[test]
fn direction_words_and_signs_must_match_the_sign_of_the_fact() {
    let revenue = &["Revenue:FY2025", "Revenue:FY2024"];
    for (ids, words, expected) in [
        (revenue, "revenue fell 25%", "other sign"),
        (revenue, "revenue rose by $250 million", "yes"),
        (revenue, "revenue fell by $250 million", "other sign"),
        (revenue, "a diff of $250 million", "yes"),
        (revenue, "-25%", "other sign"),
        (revenue, "+25%", "yes"),
    ] {
        check(ids, words, expected);
    }
    check(&["Revenue:FY2025"], "-$1.25 billion", "other sign");
    check(&["Revenue:FY2025"], "($1.25 billion)", "yes");
}

#[test]
fn a_negative_fact_must_be_described_as_negative() {
    let loss = &["NetIncome:FY2025"];
    for (words, expected) in [
        ("a net loss of $120 million", "yes"),
        ("net income of $120 million", "other sign"),
        ("net income of -$120 million", "yes"),
        ("net income of ($120 million)", "yes"),
        ("net income fell to $120 million", "other sign"),
    ] {
        check(loss, words, expected);
    }
    check(&["EPSDiluted:FY2025"], "a loss per share of $1.20", "yes");
    check(&["NetMargin:FY2025"], "a net margin of negative 9.6%", "yes");
    check(&["Cash:FY2025"], "a loss of $74.3 million", "yes");
    check(&["Revenue:FY2025"], "net debt of $1.25 billion", "yes");
}

#[test]
fn changes_of_a_loss_are_compared_with_their_direction() {
    let losses = &["NetIncome:FY2025", "NetIncome:FY2024"];
    for (words, expected) in [
        ("the net loss narrowed by $30 million", "yes"),
        ("the net loss widened by $30 million", "other sign"),
        ("the net loss improved by $30 million", "yes"),
        ("net income improved by $30 million", "yes"),
        ("the net loss narrowed 20%", "yes"),
        ("the net loss grew 20%", "other sign"),
        ("net income fell 20%", "other sign"),
    ] {
        check(losses, words, expected);
    }
}
