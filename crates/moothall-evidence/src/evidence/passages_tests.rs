use proptest::prelude::*;

use super::super::day::CalendarDay;
use super::super::submissions::AccessionNumber;
use super::*;

fn filing(form: &str) -> Filing {
    Filing {
        accession: AccessionNumber::parse("0009990001-26-000007").unwrap(),
        form: form.to_owned(),
        filed: CalendarDay::parse("2026-02-20").unwrap(),
        report_date: None,
        items: Vec::new(),
        primary_document: None,
    }
}

/// A distinguishable paragraph of prose.
fn prose(words: &str) -> String {
    format!(
        "{words} is what this paragraph of the report is about, and it is long enough to count."
    )
}

fn found(form: &str, html: &str) -> Vec<(String, u32, String)> {
    let passages = passages(html.as_bytes(), &filing(form)).unwrap();
    passages.into_iter().map(|found| (found.item, found.paragraph, found.text)).collect()
}

#[track_caller]
fn check(form: &str, html: &str, expected: &[(&str, u32, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(item, paragraph, words)| ((*item).to_owned(), *paragraph, prose(words)))
        .collect();
    assert_eq!(found(form, html), expected);
}

#[test]
fn items_are_found_after_the_table_of_contents() {
    let html = format!(
        "<table><tr><td>Item 1.</td><td>Business</td><td>3</td></tr><tr><td>Item 1A.</td><td>Risk Factors</td></tr>\
         <tr><td>Item 7.</td><td>Management’s Discussion and Analysis</td></tr><tr><td>Item 8.</td><td>Statements</td></tr></table>\
         <p>{}</p><p>PART I</p><p>ITEM 1. BUSINESS</p><p>Overview</p><p>{}</p><p>{}</p>\
         <p>Item 1A. Risk Factors</p><p>{}</p><p>Item 1B. Unresolved Staff Comments</p><p>{}</p>\
         <p>PART II — Item 7. Management's Discussion and Analysis of Financial Condition</p><p>{}</p>\
         <p>Item 7A. Quantitative Disclosures</p><p>{}</p>",
        prose("foreword"),
        prose("one"),
        prose("two"),
        prose("risk"),
        prose("staff"),
        prose("md"),
        prose("market"),
    );
    check("10-K", &html, &[("1", 1, "one"), ("1", 2, "two"), ("1A", 1, "risk"), ("7", 1, "md")]);
}

#[test]
fn an_item_title_may_follow_its_number_or_be_repeated_on_a_page() {
    let html = format!(
        "<div>Item 1.</div><div>Business</div><div>{}</div><div>Item 1. Business (continued)</div><div>{}</div>\
         <div>Item 2.</div><div>Properties</div><div>{}</div>",
        prose("one"),
        prose("two"),
        prose("building"),
    );
    check("10-K/A", &html, &[("1", 1, "one"), ("1", 2, "two")]);
}

#[test]
fn a_sentence_that_starts_with_an_item_is_not_a_heading() {
    let html = format!(
        "<p>Item 1A. Risk Factors</p><p>{}</p><p>Item 7 of this report discusses our results.</p><p>{}</p>\
         <p>Item 2. Properties</p>",
        prose("one"),
        prose("two"),
    );
    check("10-K", &html, &[("1A", 1, "one"), ("1A", 2, "two")]);
}

#[test]
fn item_of_another_form_with_the_same_number_is_not_taken() {
    let html = format!("<p>Item 1. Financial Statements</p><p>{}</p>", prose("one"));
    check("10-K", &html, &[]);
    let html = format!("<p>Item 1. Business</p><p>{}</p>", prose("one"));
    check("10-Q", &html, &[]);
    check("20-F", &html, &[]);
}

#[test]
fn items_of_a_foreign_filer_are_found_with_their_parts() {
    let html = format!(
        "<p>ITEM 3. KEY INFORMATION</p><p>{}</p><p>D. Risk Factors</p><p>{}</p>\
         <p>ITEM 4. INFORMATION ON THE COMPANY</p><p>{}</p><p>Item 4.B. Business Overview</p><p>{}</p>\
         <p>ITEM 4A. UNRESOLVED STAFF COMMENTS</p><p>{}</p>\
         <p>ITEM 5. OPERATING AND FINANCIAL REVIEW AND PROSPECTS</p><p>{}</p><p>ITEM 6. DIRECTORS</p>",
        prose("capital"),
        prose("risk"),
        prose("history"),
        prose("overview"),
        prose("staff"),
        prose("review"),
    );
    check(
        "20-F",
        &html,
        &[("3.D", 1, "risk"), ("4", 1, "history"), ("4", 2, "overview"), ("5", 1, "review")],
    );
}

#[test]
fn number_rows_and_headings_are_not_passages() {
    let html = format!(
        "<p>Item 7. Management’s Discussion</p><p>Results of operations</p>\
         <table><tr><td>Net sales</td><td>$ 1,234.5</td><td>$ 1,198.7</td><td>3.0 %</td><td>$ 1,101.2</td><td>8.9 %</td></tr></table>\
         <p>{}</p>",
        prose("growth"),
    );
    check("10-K", &html, &[("7", 1, "growth")]);
}

#[test]
fn passages_unused_by_one_item_are_given_to_the_others() {
    let many = |count: usize| -> String {
        (0..count).map(|number| format!("<p>{}</p>", prose(&format!("matter {number}")))).collect()
    };
    let html = format!(
        "<p>Item 1. Business</p>{}<p>Item 1A. Risk Factors</p>{}<p>Item 7. Discussion</p>{}",
        many(50),
        many(2),
        many(60),
    );
    let found = found("10-K", &html);
    let count = |item: &str| found.iter().filter(|(of, _, _)| of == item).count();
    assert_eq!([count("1"), count("1A"), count("7")], [19, 2, 19]);
}

#[test]
fn a_long_passage_is_truncated_at_a_sentence_and_stays_verbatim() {
    let sentence =
        "Every word of this long sentence stands in the report just as it is quoted here. ";
    let long = sentence.repeat(40);
    let html = format!("<p>Item 1. Business</p><p>{long}</p>");
    let found = found("10-K", &html);
    let (_, _, text) = &found[0];
    assert_eq!(text.trim_end(), sentence.repeat(14).trim_end());
    assert!(long.contains(text.as_str()) && text.chars().count() <= MAX_PASSAGE_CHARS);
}

#[test]
fn invalid_utf8_in_a_filing_is_replaced() {
    let mut html = format!("<p>Item 1. Business</p><p>{} ", prose("one")).into_bytes();
    html.extend([0xff, 0xfe, 0x00, 0x1b]);
    let passages = passages(&html, &filing("10-K")).unwrap();
    assert_eq!(passages[0].text, format!("{} \u{fffd}\u{fffd}", prose("one")));
}

proptest! {
    #[test]
    fn any_filing_gives_a_limited_number_of_short_verbatim_passages(
        html in "(<p>Item [1-8]A?\\. (Business|Risk Factors|Discussion|Other)</p>|<p>[a-z .]{0,200}</p>|<td>|<!--|[<&;]){0,40}"
    ) {
        let words = split_run_in_headings(html::paragraphs(&html));
        let lines = PageLines::of(&words);
        let headings: Vec<usize> = headings(&words).iter().map(|heading| heading.at).collect();
        let text: Vec<String> = (0..)
            .zip(words)
            .filter(|(at, word)| !lines.contains(word) && !headings.contains(at))
            .map(|(_, word)| word)
            .collect();
        let text = text.join(" ");
        let found = passages(html.as_bytes(), &filing("10-K")).unwrap();
        prop_assert!(found.len() <= MAX_PASSAGES);
        for passage in found {
            prop_assert!(passage.text.chars().count() <= MAX_PASSAGE_CHARS);
            prop_assert!(text.contains(&passage.text));
        }
    }
}
