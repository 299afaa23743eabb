use proptest::prelude::*;

use super::*;
use crate::claims::{CitableEvidence, ClaimChecker, ClaimVerdict};

fn found(name: &str, text: &str) -> FoundDocument {
    FoundDocument {
        name: name.to_owned(),
        kind: DocumentKind::of_name(name).unwrap(),
        sha256: Sha256Hex::of(text.as_bytes()),
        bytes: text.len() as u64,
        text: text.to_owned(),
    }
}

fn texts_of(name: &str, text: &str) -> Vec<String> {
    let (documents, missing) = documents(vec![found(name, text)]);
    assert_eq!(missing, Vec::<String>::new());
    documents.into_iter().flat_map(|one| one.passages).map(|passage| passage.text).collect()
}

#[test]
fn paragraphs_are_prefixed_with_their_heading() {
    let text = "# Acme\n\nWe make pumps.\nIn one plant.\n\n## Prices ##\nA pump costs $1,200.\n";
    assert_eq!(
        texts_of("plan.md", text),
        ["Acme: We make pumps. In one plant.", "Prices: A pump costs $1,200."]
    );
}

#[test]
fn rows_of_a_table_carry_the_names_of_its_columns() {
    let rows = ["Year: 2024; Revenue: $1,100", "Year: 2025; Revenue: $1,250; column 3: draft"];
    assert_eq!(texts_of("t.csv", "Year,Revenue\n2024,\"$1,100\"\r\n2025,\"$1,250\",draft\n"), rows);
    assert_eq!(texts_of("t.tsv", "Year\tRevenue\n2024\t$1,100\n2025\t$1,250\tdraft"), rows);
    assert_eq!(
        texts_of(
            "t.md",
            "| Year | Revenue |\n|---|--:|\n| 2024 | $1,100 |\n| 2025 | $1,250 | draft |"
        ),
        rows
    );
}

#[test]
fn a_quoted_cell_may_hold_dividers_quotes_and_lines() {
    let text = "name;said\nA;\"one; \"\"two\"\"\nthree\"\n;\n";
    assert_eq!(texts_of("t.csv", text), ["name: A; said: one; \"two\" three"]);
}

#[test]
fn unreadable_documents_are_listed_with_the_reason() {
    let long = format!("a,b\n{}", "1,2\n".repeat(MAX_PASSAGES_OF_ONE + 1));
    let (documents, missing) = documents(vec![
        found("broken.csv", "a,b\n\"1,2\n"),
        found("empty.md", "# Only a heading\n"),
        found("long.csv", &long),
    ]);
    assert_eq!(
        missing,
        [
            "broken.csv: unclosed quotation mark",
            "empty.md: no text found",
            "long.csv: only the first 400 of 401 passages are used",
        ]
    );
    assert_eq!(documents.len(), 1);
}

#[test]
fn document_ids_are_short_and_independent_of_the_file_order() {
    let names = ["b/Plan.md", "Market study (final, really final).txt", "a/plan.md", "計画.md"];
    let ids = |names: &[&str]| -> Vec<(String, String)> {
        let all = names.iter().map(|name| found(name, "Some words.")).collect();
        documents(all).0.into_iter().map(|one| (one.name, one.id)).collect()
    };
    let expected = [
        ("Market study (final, really final).txt", "market-study-final-reall"),
        ("a/plan.md", "plan"),
        ("b/Plan.md", "plan-2"),
        ("計画.md", "document"),
    ];
    let expected = expected.map(|(name, id)| (name.to_owned(), id.to_owned()));
    assert_eq!(ids(&names), expected);
    let mut turned = names;
    turned.reverse();
    assert_eq!(ids(&turned), expected);
}

#[test]
fn a_long_paragraph_is_split_without_losing_text() {
    let text = "Every word of it counts here. ".repeat(200);
    let passages = texts_of("long.txt", &text);
    assert!(passages.len() > 1 && passages.iter().all(|one| one.ends_with('.')), "{passages:?}");
    assert_eq!(passages.join(" "), text.trim_end());
}

#[test]
fn a_byte_order_mark_is_removed_and_other_encodings_are_refused() {
    assert_eq!(text_of("\u{feff}a".as_bytes()), Some("a"));
    assert_eq!(text_of(b"caf\xe9"), None);
}

/// Checks the verdicts on a sentence that cites this document.
#[track_caller]
fn check(sentence: &str, expected: &[(&str, ClaimVerdict)]) {
    let text = "# Prices\nWe raised list prices by 4% in May and lost two dealers.\n";
    let csv = "Year,Revenue\n2025,\"$1,250,000\"\n";
    let (documents, _) = documents(vec![found("plan.md", text), found("sales.csv", csv)]);
    let known = CitableEvidence { documents: &documents, ..CitableEvidence::default() };
    let claims = ClaimChecker::new(known).check(sentence);
    let said: Vec<(&str, ClaimVerdict)> =
        claims.iter().map(|claim| (claim.printed.as_str(), claim.verdict)).collect();
    assert_eq!(said, expected);
}

#[test]
fn a_quotation_altered_by_one_letter_is_caught() {
    check("They \"lost two dealers\" [U0:plan:1].", &[]);
    check(
        "They \"lost too dealers\" [U0:plan:1].",
        &[("lost too dealers", ClaimVerdict::Miscited)],
    );
}

#[test]
fn a_number_cited_from_a_document_must_appear_in_its_passage() {
    check("Prices rose by 4% [U0:plan:1].", &[("4%", ClaimVerdict::Evidence)]);
    check("Prices rose by 5% [U0:plan:1].", &[("5%", ClaimVerdict::WrongValue)]);
    check("Revenue was $1.25 million [U0:sales:1].", &[("$1.25 million", ClaimVerdict::Evidence)]);
    check(
        "Revenue was $1.35 million [U0:sales:1].",
        &[("$1.35 million", ClaimVerdict::WrongValue)],
    );
}

#[test]
fn a_citation_of_an_unknown_document_passage_is_reported() {
    check("We sell pumps [U0:plan:7].", &[("[U0:plan:7]", ClaimVerdict::BadCitation)]);
    check("We sell pumps [U0:plan].", &[("[U0:plan]", ClaimVerdict::BadCitation)]);
    check("We sell pumps [U0: Plan : 1].", &[]);
}

proptest! {
    #[test]
    fn any_text_is_read_within_the_bounds(
        text in "(?s)[\\PC\n\r\t\",;|#-]{0,400}",
        name in "[a-zA-Z0-9 ._/-]{0,40}",
        ending in prop::sample::select(vec!["md", "txt", "csv", "tsv"]),
    ) {
        let name = format!("{name}.{ending}");
        let (documents, _) = documents(vec![found(&name, &text), found(&name, &text)]);
        let mut ids = BTreeSet::new();
        for one in &documents {
            prop_assert!(ids.insert(one.id.clone()));
            let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            prop_assert!(one.id.chars().all(|letter| plain(letter) || letter == '-'));
            prop_assert!(!one.passages.is_empty() && one.passages.len() <= MAX_PASSAGES_OF_ONE);
            for passage in &one.passages {
                prop_assert!(!passage.text.trim().is_empty());
                prop_assert!(passage.text.chars().count() <= MAX_PASSAGE_CHARS);
                prop_assert!(!passage.text.contains(['\n', '\r', '\0']));
            }
        }
        // Any citation must terminate, and only existing passages must resolve.
        let known = CitableEvidence { documents: &documents, ..CitableEvidence::default() };
        let checker = ClaimChecker::new(known);
        for one in &documents {
            let last = one.passages.len();
            let sound = format!("So [U0:{}:{last}].", one.id);
            prop_assert!(checker.check(&sound).is_empty());
            let beyond = format!("So [U0:{}:{}].", one.id, last + 1);
            prop_assert_eq!(checker.check(&beyond).len(), 1);
        }
    }
}
