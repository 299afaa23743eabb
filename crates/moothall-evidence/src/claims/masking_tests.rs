use super::masked;

/// Checks that exactly the text between `{` and `}` is blanked.
#[track_caller]
fn check(marked: &str) {
    let sentence = marked.replace(['{', '}'], "");
    let mut expected = String::new();
    let mut is_blank = false;
    for character in marked.chars() {
        match character {
            '{' => is_blank = true,
            '}' => is_blank = false,
            c if is_blank => expected.extend(std::iter::repeat_n(' ', c.len_utf8())),
            c => expected.push(c),
        }
    }
    assert_eq!(masked(&sentence), expected);
}

#[test]
fn numbers_in_citations_are_not_claims() {
    check("Sales were $5 billion {[F0:Revenue:FY2025]}{[A1: 5% of €3 million]} and {[A2]}.");
    check("Cited badly {[F0 Revenue 2025]} or as {[X9:12]}.");
}

#[test]
fn dates_urls_and_accession_numbers_are_not_claims() {
    check("Filed {2025-10-31}, {10/31/2025}, {October 31, 2025}, on {31 October 2025}.");
    check("See {https://example.org/a?b=123} and {0000320193-25-000079}.");
}

#[test]
fn numbers_in_references_and_names_are_not_claims() {
    check(
        "The {score 108/120} is no number of a filing; {score 30/40}, {score 84/120 (67 to 102)} and {version 0.1.0} neither.",
    );
    check("See {Item 2.02}, {Note 12}, {Table 3} and {page 41}; {Form 10}-K.");
    check("The {S&P 500}, the {Nasdaq-100}, a {401(k)} plan and {Microsoft 365}.");
}

#[test]
fn a_quantity_after_a_reference_word_is_a_claim() {
    check("At a level 12% higher, in March 46.9% and in May 20 percent of sales.");
    check("A score 108/120 million long, a scorecard 108/120.");
    check("A note 3.5 billion long, a table 1,250 wide, round 5 million.");
}
