use proptest::prelude::*;

use super::support_tests::{events, passages, sheet};
use super::{
    CitableEvidence, Claim, ClaimChecker, ClaimKind, ClaimVerdict, MAX_NUMBERS, MAX_SENTENCES,
    MAX_TEXT_BYTES, NewsHeadline, advice_language, injected_instructions, numbers, sentences,
};
use crate::Sha256Hex;
use crate::evidence::{DocumentKind, FactId, UserDocument, UserPassage};

/// Checks every claim of a text as its verdict and printed text.
#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    let sheet = sheet();
    let (events, passages) = (events(), passages());
    let headlines = [NewsHeadline {
        number: 4,
        text: "Mill Works to cut 900 jobs".to_owned(),
        url: "https://news.example/4".to_owned(),
        source: "news.example".to_owned(),
        published: None,
    }];
    let known = CitableEvidence {
        sheet: Some(&sheet),
        events: &events,
        passages: &passages,
        headlines: &headlines,
        ..CitableEvidence::default()
    };
    let claims = ClaimChecker::new(known).check(text);
    let found: Vec<(String, String)> =
        claims.iter().map(|claim| (claim.verdict.to_string(), claim.printed.clone())).collect();
    let found: Vec<(&str, &str)> =
        found.iter().map(|(verdict, printed)| (verdict.as_str(), printed.as_str())).collect();
    assert_eq!(found, expected, "{text}\n{claims:#?}");
}

const PASSAGE: &str = "[T0:0000000001-25-000001:1A:3]";
const EVENT: &str = "[E0:0000000001-25-000007]";

#[test]
fn a_number_is_checked_against_the_citations_of_its_sentence() {
    check("Revenue was $1.25 billion [F0:Revenue:FY2025].", &[("OK", "$1.25 billion")]);
    let words = "one point two five billion dollars";
    check(&format!("Revenue was {words} [F0:Revenue:FY2025]."), &[("OK", words)]);
    let words = "one point three five billion dollars";
    check(&format!("Revenue was {words} [F0:Revenue:FY2025]."), &[("WRONG_VALUE", words)]);
    check("revenue was $1.25 billion [F0:revenue:Q4FY25].", &[("WRONG_PERIOD", "$1.25 billion")]);
    check("Revenue grew 25% [F0:Revenue:FY2025; F0:Revenue:FY2024].", &[("OK_DERIVED", "25%")]);
    check("Capex was $48 million [F0:Capex:FY2025].", &[("ROUNDING", "$48 million")]);
    check("Revenue was $1.00 billion [F0:Revenue:FY2025].", &[("WRONG_PERIOD", "$1.00 billion")]);
    check("Revenue was $1.25 million [F0:Revenue:FY2025].", &[("WRONG_SCALE", "$1.25 million")]);
    check("Gross margin was 0.469% [F0:GrossMargin:FY2025].", &[("WRONG_SCALE", "0.469%")]);
    check("Net income was $120 million [F0:NetIncome:FY2025].", &[("WRONG_SIGN", "$120 million")]);
    check("Capex was $74.3 million [F0:Capex:FY2025].", &[("MISCITED", "$74.3 million")]);
    check("Revenue was $1.35 billion [F0:Revenue:FY2025].", &[("WRONG_VALUE", "$1.35 billion")]);
    check("It has 5,000 shops [F0:Revenue:FY2025].", &[("UNSUPPORTED", "5,000")]);
    check("Revenue was €1.25 billion [F0:Revenue:FY2025].", &[("UNSUPPORTED", "€1.25 billion")]);
}

#[test]
fn a_number_that_is_both_a_fact_and_a_difference_counts_as_the_fact() {
    let difference = "F0:GrossMargin:FY2025; F0:GrossMargin:FY2024";
    let rose = "Gross margin rose 0.7 percentage points";
    check(&format!("{rose} [{difference}]."), &[("OK_DERIVED", "0.7 percentage points")]);
    let both = format!("{rose} [{difference}; F0:GrossMargin.delta:FY2025].");
    check(&both, &[("OK", "0.7 percentage points")]);
}

#[test]
fn an_uncited_input_of_a_cited_growth_needs_a_comparison_to_be_older() {
    let growth = "[F0:Revenue.yoy:FY2025]";
    check(&format!("Revenue was $1.00 billion {growth}."), &[("WRONG_PERIOD", "$1.00 billion")]);
    let compared = format!("Revenue grew from $1.00 billion {growth}.");
    check(&compared, &[("OK", "$1.00 billion")]);
}

#[test]
fn the_fact_that_would_support_a_number_is_a_filed_year_if_possible() {
    let mut sheet = sheet();
    let year = FactId::parse("Capex:FY2025").unwrap();
    let same = sheet.facts[&year].clone();
    for id in ["Capex:FY2024", "Capex:FY2025Q4", "Capex.rule40:FY2025"] {
        sheet.facts.insert(FactId::parse(id).unwrap(), same.clone());
    }
    let known = CitableEvidence { sheet: Some(&sheet), ..CitableEvidence::default() };
    let claims = ClaimChecker::new(known).check("Capex was $48.7 million.");
    let found: Vec<_> = claims.iter().map(|claim| (claim.verdict, claim.detail.as_str())).collect();
    assert_eq!(found, [(ClaimVerdict::Uncited, "[F0:Capex:FY2025] would support it")]);
}

#[test]
fn a_number_without_a_citation_is_flagged() {
    check("Capex was $48.7 million.", &[("UNCITED", "$48.7 million")]);
    check("Something cost $48.7 million.", &[("UNSUPPORTED", "$48.7 million")]);
    check("Revenue could reach $3 billion.", &[("PROJECTION", "$3 billion")]);
    check("Revenue in FY2029 is $3 billion.", &[("PROJECTION", "$3 billion")]);
    check("Revenue will reach $3 billion [F0:Revenue:FY2025].", &[("PROJECTION", "$3 billion")]);
    check("We assume $3 billion [A1: guess].", &[("ASSUMPTION", "$3 billion")]);
}

/// Regression: an assumption beside a citation excused every wrong number of the sentence.
#[test]
fn an_assumption_does_not_excuse_a_wrong_number_with_a_citation() {
    let text = "Of revenue of $1.25 billion we assume 7% [F0:Revenue:FY2025][A1: guess].";
    check(text, &[("OK", "$1.25 billion"), ("ASSUMPTION", "7%")]);
    let text = "Of revenue of $1.25 million we assume 7% [F0:Revenue:FY2025][A1: guess].";
    check(text, &[("WRONG_SCALE", "$1.25 million"), ("ASSUMPTION", "7%")]);
}

#[test]
fn a_citation_must_name_something_that_exists() {
    for citation in [
        "[F0:Revenue:FY2031]",
        "[F0:Turnover:FY2025]",
        "[F0:Revenue]",
        "[E0:0000000001-25-999999]",
        "[T0:0000000001-25-000001:1A:99]",
        "[N0:5]",
        "[X0:5]",
    ] {
        check(&format!("It is so {citation}."), &[("BAD_CITATION", citation)]);
    }
    let claims =
        ClaimChecker::new(CitableEvidence::default()).check("It is so [F0:Revenue:FY2025].");
    assert_eq!(claims[0].verdict, ClaimVerdict::BadCitation);
}

#[test]
fn a_passage_supports_only_numbers_that_it_contains() {
    check(&format!("It employs 4,200 people {PASSAGE}."), &[("EVIDENCE", "4,200")]);
    check(&format!("It employs 5,200 people {PASSAGE}."), &[("WRONG_VALUE", "5,200")]);
    check(&format!("Prices rose 3.5% {PASSAGE}."), &[("WRONG_SIGN", "3.5%")]);
    check(&format!("It says “pass higher costs on” {PASSAGE}."), &[]);
    check(&format!("It says “absorb costs” {PASSAGE}."), &[("MISCITED", "absorb costs")]);
    let both =
        format!("With revenue of $1.25 billion, 18% is one customer [F0:Revenue:FY2025]{PASSAGE}.");
    check(&both, &[("OK", "$1.25 billion"), ("EVIDENCE", "18%")]);
}

#[test]
fn an_event_has_days_and_items_and_no_amounts() {
    check(&format!("On October 30, 2025 it filed under Item 2.02 {EVENT}."), &[]);
    check(
        &format!("Results were published at $7 million {EVENT}."),
        &[("UNSUPPORTED", "$7 million")],
    );
    check(&format!("On May 1, 2025 it filed {EVENT}."), &[("PERIOD_TEXT", "May 1, 2025")]);
    check(&format!("It filed under Item 5.02 {EVENT}."), &[("MISCITED", "Item 5.02")]);
}

#[test]
fn a_document_of_the_user_supports_only_numbers_that_it_contains() {
    let documents = [UserDocument {
        id: "plan".to_owned(),
        name: "plan.md".to_owned(),
        kind: DocumentKind::Markdown,
        sha256: Sha256Hex::of(b""),
        bytes: 0,
        passages: vec![UserPassage { number: 2, text: "We open 140 shops.".to_owned() }],
    }];
    let known = CitableEvidence { documents: &documents, ..CitableEvidence::default() };
    let verdict = |text: &str| ClaimChecker::new(known).check(text)[0].verdict;
    assert_eq!(verdict("It opens 140 shops [U0:plan:2]."), ClaimVerdict::Evidence);
    assert_eq!(verdict("It opens 150 shops [U0:plan:2]."), ClaimVerdict::WrongValue);
    assert_eq!(verdict("It opens shops [U0:plan:1]."), ClaimVerdict::BadCitation);
    assert_eq!(verdict("It opens shops [U0:budget:2]."), ClaimVerdict::BadCitation);
}

#[test]
fn a_headline_supports_only_numbers_that_it_contains() {
    check("It cuts 900 jobs [N0:4].", &[("EVIDENCE", "900")]);
    check("It cuts 950 jobs [N0:4].", &[("UNSUPPORTED", "950")]);
}

#[test]
fn a_sentence_must_name_the_cited_period() {
    check(
        "In fiscal 2023 revenue was $1.25 billion [F0:Revenue:FY2025].",
        &[("OK", "$1.25 billion"), ("PERIOD_TEXT", "2023")],
    );
}

/// What a sentence may cite, with the names of the columns of the snapshots.
const CITED: &[(&str, &str)] = &[
    ("revenue", "[F0:Revenue:FY2025]"),
    ("two years", "[F0:Revenue:FY2025][F0:Revenue:FY2024]"),
    ("quarters", "[F0:Revenue:FY2025Q4][F0:Revenue:FY2025Q3]"),
    ("loss", "[F0:NetIncome:FY2025]"),
    ("losses", "[F0:NetIncome:FY2025][F0:NetIncome:FY2024]"),
    ("share of", "[F0:Capex:FY2025][F0:Revenue:FY2025]"),
    ("per share", "[F0:EPSDiluted:FY2025][F0:SharesDiluted:FY2025]"),
    ("margins", "[F0:GrossMargin:FY2025][F0:GrossMargin:FY2024]"),
    ("growth", "[F0:Revenue.yoy:FY2025]"),
    ("ratio", "[F0:CurrentRatio:FY2025]"),
    ("days", "[F0:DSO:FY2025]"),
    ("passage", PASSAGE),
    ("assumed", "[F0:Revenue:FY2025][A1: guess]"),
    ("nothing", ""),
];

/// A table of the verdicts on every sentence, with a column for everything that it may cite.
fn verdicts(sentences: &[String], columns: &[(&str, &str)]) -> String {
    let sheet = sheet();
    let passages = passages();
    let known =
        CitableEvidence { sheet: Some(&sheet), passages: &passages, ..CitableEvidence::default() };
    let checker = ClaimChecker::new(known);
    let mut table = format!("{:50}", "");
    for (name, _) in columns {
        table += &format!(" {name:13}");
    }
    for sentence in sentences {
        table += &format!("\n{sentence:50}");
        for (_, cited) in columns {
            let claims = checker.check(&format!("{sentence} {cited}."));
            let found: Vec<String> =
                claims.iter().map(|claim| claim.verdict.to_string().to_lowercase()).collect();
            table += &format!(" {:13}", found.join("+"));
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_verdict_on_a_printed_form_depends_on_what_is_cited() {
    let forms = [
        "$1.25 billion",
        "$1,250 million",
        "$1,250,000 thousand",
        "$1,250,000,000",
        "$1.250 billion",
        "1.25 billion dollars",
        "$1.3 billion",
        "$1.2 billion",
        "$1.26 billion",
        "$1.25",
        "1.25",
        "about $1.2 billion",
        "more than $1.2 billion",
        "less than $1.3 billion",
        "at least $1.3 billion",
        "at most $1.2 billion",
        "nearly $1.3 billion",
        "$1.2 billion to $1.3 billion",
        "between $1.0 and $1.25 billion",
        "$250 million",
        "$2.25 billion",
        "25%",
        "25.0 percent",
        "24%",
        "0.25%",
        "a quarter",
        "2,500 basis points",
        "25 percentage points",
        "1.25 times",
        "1.25x",
        "1.3x",
        "half",
        "doubled",
        "$30 million",
        "9.7%",
        "1.1x",
        "-$120 million",
        "($120 million)",
        "$120 million",
        "a loss of $120 million",
        "negative $120 million",
        "20%",
        "$270 million",
        "3.9%",
        "$48.7 million",
        "$1.20 per share",
        "-$1.20",
        "100 million shares",
        "100,000,000",
        "46.9%",
        "47%",
        "0.7 percentage points",
        "70 basis points",
        "0.7%",
        "1.5%",
        "0.89x",
        "0.9",
        "0.89",
        "34.9 days",
        "35 days",
        "34 days",
        "4,200 people",
        "18%",
        "3.5%",
        "12",
        "\u{20ac}1.25 billion",
        "one point two five billion dollars",
        "one hundred million shares",
    ];
    let sentences: Vec<String> = forms.iter().map(|form| format!("It was {form}")).collect();
    insta::assert_snapshot!(verdicts(&sentences, CITED));
}

#[test]
fn the_verdict_on_a_number_depends_on_the_words_around_it() {
    let frames = [
        "Revenue was {}",
        "It rose {}",
        "It rose by {}",
        "It fell {}",
        "It fell to {}",
        "It grew {} a year",
        "It grew {} from fiscal 2024",
        "It declined by {}",
        "It lost {}",
        "The loss narrowed by {}",
        "The loss widened by {}",
        "The net loss was {}",
        "It did not rise {}",
        "Instead of {}, it was less",
        "In fiscal 2024 it was {}",
        "In fiscal 2025 it was {}",
        "In the fourth quarter it was {}",
        "Last year it was {}",
        "A year ago it was {}",
        "It could reach {}",
        "It will be {} by 2028",
        "It averages {}",
        "It was {} compared with the year before",
        "In total it was {} over two years",
    ];
    let forms =
        ["$1.25 billion", "$1.0 billion", "$250 million", "25%", "$120 million", "$30 million"];
    let all = frames.iter().flat_map(|frame| forms.map(|form| frame.replace("{}", form)));
    let columns = ["two years", "quarters", "losses", "growth", "assumed", "nothing"];
    let cited: Vec<_> = CITED.iter().copied().filter(|(name, _)| columns.contains(name)).collect();
    insta::assert_snapshot!(verdicts(&all.collect::<Vec<_>>(), &cited));
}

#[test]
fn claims_beyond_the_limits_are_reported_as_unchecked() {
    let last = |text: &str| {
        let sheet = sheet();
        let claims = ClaimChecker::new(CitableEvidence {
            sheet: Some(&sheet),
            ..CitableEvidence::default()
        })
        .check(text);
        let claim: Option<Claim> = claims.last().cloned();
        claim.map(|claim| (claim.kind, claim.verdict))
    };
    let bound = Some((ClaimKind::Bound, ClaimVerdict::Unchecked));
    assert_eq!(last(&"x".repeat(MAX_TEXT_BYTES)), None);
    assert_eq!(last(&"x".repeat(MAX_TEXT_BYTES + 1)), bound);
    assert_eq!(last(&"é".repeat(MAX_TEXT_BYTES)), bound);
    assert_eq!(last(&"It is so.\n".repeat(MAX_SENTENCES)), None);
    assert_eq!(last(&"It is so.\n".repeat(MAX_SENTENCES + 1)), bound);
    assert_eq!(last(&"5% ".repeat(MAX_NUMBERS + 1)), bound);
    let citations = "[F0:Revenue:FY2025]".repeat(25);
    let sheet = sheet();
    let claims =
        ClaimChecker::new(CitableEvidence { sheet: Some(&sheet), ..CitableEvidence::default() })
            .check(&citations);
    assert_eq!(claims[0].verdict, ClaimVerdict::Unchecked);
}

/// Fragments that texts are built from, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("Revenue "),
        Just("grew "),
        Just("fell to "),
        Just("$"),
        Just("€"),
        Just("("),
        Just(")"),
        Just("416.2"),
        Just("1,250"),
        Just(".5"),
        Just("99999999999999999999999999999"),
        Just("-"),
        Just("–"),
        Just(" billion"),
        Just("%"),
        Just(" bps"),
        Just("x"),
        Just(" to "),
        Just(" and "),
        Just("between "),
        Just(". "),
        Just("\n"),
        Just("- "),
        Just("[F0:Revenue:FY2025]"),
        Just("[F0:NetIncome:FY2024; F0:Revenue.yoy:FY2025]"),
        Just("[A1: x]"),
        Just("["),
        Just("]"),
        Just("[T0:0000000001-25-000001:1A:3]"),
        Just("[E0:0000000001-25-000007]"),
        Just("“"),
        Just("”"),
        Just("\""),
        Just("doubled "),
        Just("a third of "),
        Just("FY2025 "),
        Just("Q3 "),
        Just("²é４"),
        Just("\u{200b}"),
        Just("net loss "),
        Just("about "),
        Just("May 12, 2025 "),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_any(text: &str) -> Result<(), TestCaseError> {
    let sheet = sheet();
    let (events, passages) = (events(), passages());
    let known = CitableEvidence {
        sheet: Some(&sheet),
        events: &events,
        passages: &passages,
        ..CitableEvidence::default()
    };
    let checker = ClaimChecker::new(known);
    let claims = checker.check(text);
    prop_assert_eq!(&claims, &checker.check(text));
    let found = sentences(text);
    prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for claim in &claims {
        prop_assert!(usize::try_from(claim.sentence).unwrap() < found.len().max(1));
        prop_assert!(claim.printed.chars().count() <= 160);
        let finding = claim.finding("m1");
        prop_assert_eq!(finding.is_some(), claim.verdict.severity().is_some());
        prop_assert!(finding.is_none_or(|finding| finding.message.chars().count() <= 400));
    }
    for range in found {
        let sentence = &text[range];
        for number in numbers(sentence) {
            prop_assert!(sentence.get(number.start..number.end).is_some());
        }
    }
    prop_assert!(advice_language(text).len() <= 17 && injected_instructions(text).len() <= 34);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn checking_a_text_of_known_parts_twice_gives_the_same_result(text in pieces()) {
        check_any(&text)?;
    }

    #[test]
    fn checking_any_text_twice_gives_the_same_result(text in ".{0,300}") {
        check_any(&text)?;
    }
}
