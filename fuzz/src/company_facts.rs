//! No bytes from a filer make a fact sheet panic, and every sheet survives a round trip through its
//! stored format.
//!
//! Input: a digit that selects the case, then
//! - `0`: a company facts document;
//! - `1`: a stored sheet;
//! - `2`: rows of a document, eight bytes each. The target builds the document, because random
//!   bytes rarely form one.

use std::collections::BTreeMap;

use moothall_core::evidence::metrics::METRICS;
use moothall_core::evidence::{CalendarDay, CompanyFacts, FactSheet, FactUnit};
use moothall_core::tokens_expected;

pub fn company_facts(data: &[u8]) {
    let [choice, bytes @ ..] = data else { return };
    match choice % 3 {
        0 => check_document(bytes),
        1 => check_written(bytes),
        _ => check_document(document(bytes).as_bytes()),
    }
}

fn check_document(bytes: &[u8]) {
    let Ok(facts) = CompanyFacts::parse(bytes) else { return };
    for as_of in [CalendarDay::MAX, CalendarDay::parse("2021-06-30").unwrap()] {
        let Ok(sheet) = FactSheet::build(&facts, as_of) else { continue };
        let filings = sheet.facts.values().filter_map(|fact| fact.filed());
        assert!(filings.map(|filed| filed.filed).max() <= Some(as_of));
        let written = sheet.to_json();
        assert_eq!(FactSheet::from_json(&written).unwrap(), sheet);
        check_views(&sheet);
    }
}

fn check_written(bytes: &[u8]) {
    let Ok(sheet) = FactSheet::from_json(bytes) else { return };
    assert_eq!(sheet.to_json(), bytes);
    check_views(&sheet);
}

fn check_views(sheet: &FactSheet) {
    assert!(tokens_expected(&sheet.table(1_500)) <= 1_500);
    assert_eq!(sheet.rows().len(), sheet.facts.len());
    assert!(sheet.facts.keys().all(|id| sheet.display_value(id).is_some()));
    sheet.checks.iter().for_each(|check| drop(check.to_string()));
    drop(sheet.coverage());
    drop(sheet.missing_values());
}

const SPANS: &[(&str, &str)] = &[
    ("-01-01", "-12-31"),
    ("-01-01", "-03-31"),
    ("-04-01", "-06-30"),
    ("-07-01", "-09-30"),
    ("-01-01", "-06-30"),
    ("-01-01", "-09-30"),
    ("-10-01", "-12-31"),
    ("", "-12-31"),
    ("", "-03-31"),
    ("", "-06-30"),
    ("", "-09-30"),
];
const VALUES: &[&str] =
    &["0", "1", "-1", "1e18", "-1e18", "1e-10", "-1e-10", "0.01", "7.46", "1000000000", "null"];

fn document(bytes: &[u8]) -> String {
    let mut tags: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for row in bytes.chunks_exact(8) {
        let pick = |byte: u8, length: usize| usize::from(byte) % length;
        let metric = &METRICS[pick(row[0], METRICS.len())];
        let tag = metric.concepts[pick(row[1], metric.concepts.len())];
        let unit = match metric.unit {
            FactUnit::PerShare => "USD/shares",
            FactUnit::Shares => "shares",
            _ => "USD",
        };
        let year = 2015 + pick(row[2], 12);
        let (start, end) = SPANS[pick(row[3], SPANS.len())];
        let start = match start {
            "" => "null".to_owned(),
            start => format!("\"{year}{start}\""),
        };
        let value = match VALUES.get(usize::from(row[4])) {
            Some(value) => (*value).to_owned(),
            None => (i64::from(row[4]) * i64::from(i8::from_le_bytes([row[5]]))).to_string(),
        };
        let filed = year + 1 + pick(row[6], 4);
        let form = ["10-K", "10-Q", "20-F", "10-K/A"][pick(row[7], 4)];
        tags.entry((tag, unit)).or_default().push(format!(
            "{{\"start\":{start},\"end\":\"{year}{end}\",\"val\":{value},\
             \"accn\":\"0000000001-{:02}-{:06}\",\"fy\":{year},\"form\":\"{form}\",\
             \"filed\":\"{filed}-02-{:02}\"}}",
            filed % 100,
            row[7],
            1 + row[7] % 28,
        ));
    }
    let mut taxonomies: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for ((tag, unit), rows) in tags {
        let (taxonomy, name) = tag.split_once(':').unwrap();
        let units = taxonomies.entry(taxonomy).or_default().entry(name).or_default();
        units.push(format!("\"{unit}\":[{}]", rows.join(",")));
    }
    let concepts = |concepts: BTreeMap<&str, Vec<String>>| {
        let written = concepts
            .into_iter()
            .map(|(name, units)| format!("\"{name}\":{{\"units\":{{{}}}}}", units.join(",")));
        written.collect::<Vec<_>>().join(",")
    };
    let taxonomies: Vec<String> = taxonomies
        .into_iter()
        .map(|(taxonomy, tags)| format!("\"{taxonomy}\":{{{}}}", concepts(tags)))
        .collect();
    format!(
        "{{\"cik\":\"0000000001\",\"entityName\":\"Any\",\"facts\":{{{}}}}}",
        taxonomies.join(",")
    )
}
