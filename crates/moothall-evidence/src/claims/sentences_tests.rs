use super::sentences;

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found: Vec<&str> = sentences(text).into_iter().map(|range| text[range].trim()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_full_stop_ends_a_sentence_only_before_a_new_one() {
    check(
        "Sales grew 6.4%. Margins did too! Why? It is 5 p.m. now.",
        &["Sales grew 6.4%.", "Margins did too!", "Why?", "It is 5 p.m. now."],
    );
    check(
        "Acme Inc. Holdings of the U.S. West grew.",
        &["Acme Inc. Holdings of the U.S. West grew."],
    );
}

#[test]
fn a_citation_belongs_to_the_sentence_before_it() {
    check(
        "It grew. [F0:A:FY2025][F0:B:FY2024] Then it fell.",
        &["It grew. [F0:A:FY2025][F0:B:FY2024]", "Then it fell."],
    );
    check("It grew.\n[F0:A:FY2025]\nThen it fell.", &["It grew.\n[F0:A:FY2025]", "Then it fell."]);
}

/// Regression: an assumption at the start of a line was assigned to the previous line, whose
/// numbers then passed.
#[test]
fn a_citation_at_the_start_of_a_line_belongs_to_that_line() {
    check("It grew 5%.\n[A1: guess] We assume 7%.", &["It grew 5%.", "[A1: guess] We assume 7%."]);
}

#[test]
fn no_sentence_ends_inside_brackets_or_quotation_marks() {
    check(
        "We assume 5% [A1: see above. No source]. Next.",
        &["We assume 5% [A1: see above. No source].", "Next."],
    );
    check(
        "It says \"Costs rose. Prices fell.\" there. Next.",
        &["It says \"Costs rose. Prices fell.\" there.", "Next."],
    );
    check(
        "It says “Costs rose. Prices fell.” Next.",
        &["It says “Costs rose. Prices fell.”", "Next."],
    );
}

#[test]
fn lines_are_sentences_but_wrapped_paragraphs_are_not() {
    check("# Title\n- Revenue: $5\n- Margin: 4%\n", &["# Title", "- Revenue: $5", "- Margin: 4%"]);
    check(
        "The revenue of the company has reached a level of\n$416.2 billion in the year. Next.",
        &[
            "The revenue of the company has reached a level of\n$416.2 billion in the year.",
            "Next.",
        ],
    );
}

#[test]
fn an_empty_text_has_no_sentences() {
    check("", &[]);
    check(" \n\n ", &[]);
}
