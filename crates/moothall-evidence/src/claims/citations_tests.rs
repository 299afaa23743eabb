use super::{CitationTarget, citations, plain_item};

#[track_caller]
fn check(sentence: &str, expected: &[CitationTarget]) {
    let found: Vec<CitationTarget> =
        citations(sentence).into_iter().map(|found| found.cited).collect();
    assert_eq!(found, expected);
}

fn fact(metric: &str, period: &str) -> CitationTarget {
    CitationTarget::Fact { metric: metric.to_owned(), period: period.to_owned() }
}

#[test]
fn every_kind_of_citation_is_parsed() {
    check(
        "a [F0:Revenue:FY2025] b [E0:0000320193-25-000079] c [N0:12] d [A1: a guess, 5%; mine] e [A2] f [A]",
        &[
            fact("Revenue", "FY2025"),
            CitationTarget::Event { accession: "0000320193-25-000079".to_owned() },
            CitationTarget::Headline { number: 12 },
            CitationTarget::Assumption,
            CitationTarget::Assumption,
            CitationTarget::Assumption,
        ],
    );
    let document =
        |document: &str| CitationTarget::Document { document: document.to_owned(), passage: 2 };
    check(
        "a [U0:plan:2] b [U0: Plan : p2] c [X0:m7-D2-1]",
        &[
            document("plan"),
            document("plan"),
            CitationTarget::Calculation { id: "m7-D2-1".to_owned() },
        ],
    );
    check(
        "[T0:0000320193-25-000079:Item 1A:p7]",
        &[CitationTarget::Passage {
            accession: "0000320193-25-000079".to_owned(),
            item: "1a".to_owned(),
            paragraph: 7,
        }],
    );
}

#[test]
fn one_bracket_may_contain_several_citations() {
    check("[F0:A:FY2025; F0:B:FY2024]", &[fact("A", "FY2025"), fact("B", "FY2024")]);
    check("[F0:A:FY2025, B:FY2024]", &[fact("A", "FY2025"), fact("B", "FY2024")]);
    check("[F0:A:FY2025; N0:3]", &[fact("A", "FY2025"), CitationTarget::Headline { number: 3 }]);
    check("[F0:A:FY2025][F0:B:FY2024]", &[fact("A", "FY2025"), fact("B", "FY2024")]);
}

#[test]
fn an_impossible_citation_is_malformed() {
    for sentence in [
        "[F0:Revenue]",
        "[F0]",
        "[F0 Revenue FY2025]",
        "[T0:x:1A]",
        "[T0::1A:3]",
        "[T0:x::3]",
        "[T0:x:1A:3:4]",
        "[U0:plan]",
        "[U0:plan:first]",
        "[N0:first]",
        "[X1:y]",
    ] {
        let found = citations(sentence);
        assert!(
            matches!(found[..], [ref one] if matches!(one.cited, CitationTarget::Malformed { .. })),
            "{sentence}"
        );
    }
}

#[test]
fn other_brackets_are_not_citations() {
    check("see [1], [note], [Table 3: x] and [sic]", &[]);
}

#[test]
fn item_names_are_normalized() {
    for item in ["1A", "Item 1A", "item 1a."] {
        assert_eq!(plain_item(item), "1a");
    }
}
