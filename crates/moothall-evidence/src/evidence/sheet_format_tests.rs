use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::evidence::CompanyFacts;
use crate::evidence::metrics::METRICS;
use crate::evidence::test_data::{ALL, APPLE, MICROSOFT, WALMART, read};

#[test]
fn a_fact_sheet_round_trips_through_json() {
    for sample in ALL {
        let sheet = &*sample.sheet;
        let bytes = sheet.to_json();
        let again = FactSheet::from_json(&bytes).unwrap();
        assert_eq!(&again, sheet, "{}", sample.name);
        assert_eq!(again.to_json(), bytes, "{}", sample.name);
        assert_eq!(again.hash(), sheet.hash(), "{}", sample.name);
    }
}

#[test]
fn a_fact_sheet_stays_small() {
    for sample in ALL {
        let bytes = sample.sheet.to_json().len();
        assert!(bytes < 80_000, "{}: {bytes}", sample.name);
    }
}

/// The file format: a change requires a new format name.
#[test]
fn a_fact_sheet_keeps_its_serialized_form() {
    let text = String::from_utf8(MICROSOFT.sheet.to_json()).unwrap();
    insta::assert_snapshot!(text.replace("},", "},\n").replace("],\"", "],\n\""));
}

#[test]
fn the_hash_of_a_fact_sheet_is_stable() {
    insta::assert_snapshot!(
        ALL.iter().map(|one| format!("{} {}\n", one.name, one.sheet.hash())).collect::<String>()
    );
}

#[test]
fn a_fact_sheet_as_of_another_day_has_a_different_hash() {
    let as_of = CalendarDay::parse("2026-01-29").unwrap();
    let earlier = FactSheet::build(&APPLE.facts, as_of).unwrap();
    assert_ne!(earlier.hash(), APPLE.sheet.hash());
}

/// The index of a span with a start date.
fn a_year_in(sheet: &Value) -> usize {
    sheet["spans"].as_array().unwrap().iter().position(|span| !span[0].is_null()).unwrap()
}

fn written() -> Value {
    serde_json::from_slice(&WALMART.sheet.to_json()).unwrap()
}

#[track_caller]
fn check_refused(change: impl FnOnce(&mut Value), expected: &str) {
    let mut sheet = written();
    change(&mut sheet);
    let read = FactSheet::from_json(&serde_json::to_vec(&sheet).unwrap());
    let Err(EvidenceError::Json { source, .. }) = read else { panic!("not refused: {expected}") };
    assert!(source.to_string().starts_with(expected), "{source}");
}

#[test]
fn an_invalid_fact_sheet_is_refused() {
    check_refused(|sheet| sheet["format"] = json!("moothall-f0/0"), "unsupported format version");
    check_refused(|sheet| sheet["currency"] = json!("dollars"), "invalid currency code");
    check_refused(
        |sheet| sheet["entity"] = json!("a\nb"),
        &format!(
            "the company name has hidden characters, extra spaces or more than {MAX_NAME_CHARS} characters"
        ),
    );
    check_refused(|sheet| sheet["fiscal_year_ends"] = json!([]), "no fiscal year");
    for ends in [
        json!([[2025, "2035-01-26"]]),
        json!([[i32::MAX, "2035-01-26"]]),
        json!([[2025, "2025-01-26"], [2025, "2025-01-27"]]),
        json!([[2025, "2025-01-26"], [2026, "2024-01-26"]]),
    ] {
        check_refused(
            |sheet| sheet["fiscal_year_ends"] = ends,
            "a fiscal year has an invalid end date",
        );
    }
    check_refused(
        |sheet| sheet["filings"][0][0] = json!("http://evil.example/"),
        "a filing is not a periodic report filed by the as-of date",
    );
    check_refused(
        |sheet| sheet["as_of"] = json!("2020-01-01"),
        "a filing is not a periodic report filed by the as-of date",
    );
    check_refused(
        |sheet| sheet["spans"][a_year_in(&written())][1] = json!("1970-01-01"),
        "a span ends before it starts",
    );
    check_refused(
        |sheet| sheet["splits"] = json!([[9, "2024-08-28"]]),
        "a split has an invalid ratio",
    );
    check_refused(
        |sheet| sheet["restated"]["Revenue:FY2025"] = json!(["many", "2024-01-01"]),
        "invalid",
    );
    check_refused(
        |sheet| sheet["restated"]["NetIncome:FY1999"] = json!(["1", "2024-01-01"]),
        "a restatement refers to a missing fact",
    );
    check_refused(
        |sheet| sheet["candidates"] = json!([["Revenue:FY2025", "us-gaap:Assets", "1", "2"]]),
        "an unused tag belongs to no fact",
    );
    check_refused(|sheet| sheet["more"] = json!(1), "unknown field `more`");
}

#[test]
fn an_inconsistent_fact_is_refused() {
    let change = |fact: Value| move |sheet: &mut Value| sheet["facts"]["Revenue"]["FY2025"] = fact;
    let position = |name: &str| {
        let concepts = written()["concepts"].as_array().unwrap().clone();
        concepts.iter().position(|concept| concept == name).unwrap()
    };
    let of_assets = position("us-gaap:Assets");
    check_refused(change(json!(["1", of_assets, 0, 0])), "a tag does not belong to its metric");
    let of_revenue = position("us-gaap:Revenues");
    let a_year = a_year_in(&written());
    check_refused(change(json!(["1", 9999, 0, 0])), "missing tag");
    check_refused(change(json!(["1", of_revenue, 9999, 0])), "missing filing");
    check_refused(change(json!(["1", of_revenue, 0, 9999])), "missing span");
    check_refused(
        change(json!(["79228162514264337593543950335", of_revenue, 0, a_year])),
        "a value is too large or has too many decimals",
    );
    check_refused(
        change(json!(["1", of_revenue, 0, 0])),
        "a balance has a start date or a flow has none",
    );
    check_refused(change(json!([1, of_revenue, 0, a_year])), "invalid type");
    check_refused(
        |sheet| sheet["facts"]["Profit"] = json!({"FY2025": ["1", 0, 0, 0]}),
        "unknown metric",
    );
    check_refused(
        move |sheet| sheet["facts"]["Revenue"]["FY2035"] = json!(["1", of_revenue, 0, a_year]),
        "a period is outside the fiscal years",
    );
}

#[test]
fn a_fact_sheet_that_is_not_canonical_is_refused() {
    let mut sheet = written();
    sheet["filings"].as_array_mut().unwrap().push(json!([
        "0001045810-26-000001",
        "10-Q",
        "2026-01-01"
    ]));
    let error = FactSheet::from_json(&serde_json::to_vec(&sheet).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "invalid fact sheet: not in canonical form");
    let spaced = [WALMART.sheet.to_json(), b" ".to_vec()].concat();
    assert!(FactSheet::from_json(&spaced).is_err());
}

#[test]
fn a_fact_sheet_can_be_nested_in_a_tagged_enum() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Sheet { sheet: FactSheet },
    }
    let tagged = Tagged::Sheet { sheet: MICROSOFT.sheet.clone() };
    let text = serde_json::to_string(&tagged).unwrap();
    assert_eq!(serde_json::from_str::<Tagged>(&text).unwrap(), tagged);
}

#[test]
fn a_sheet_that_is_too_long_is_refused() {
    let error = FactSheet::from_json(&vec![b' '; MAX_BYTES + 1]).unwrap_err();
    assert!(matches!(error, EvidenceError::TooLarge { .. }));
}

/// Values found in filings, and values at the limits.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        (-1_000_000_000_000_i64..1_000_000_000_000).prop_map(|value| value.to_string()),
        (-20_000_i64..20_000).prop_map(|cents| Decimal::new(cents, 2).to_string()),
        prop::sample::select(vec![
            "0",
            "1",
            "-1",
            "1e18",
            "-1e18",
            "1e-10",
            "-0.0000000001",
            "999999999999999999",
            "null",
            "1e400",
        ])
        .prop_map(str::to_owned),
    ]
}

prop_compose! {
    /// A row of any tag: mostly a calendar year, quarter or balance, filed soon after it or later.
    fn row()(
        metric in 0..METRICS.len(),
        tag in 0_usize..8,
        year in 2016_i32..2026,
        shape in 0_usize..9,
        value in values(),
        lag in 0_i32..3,
        annual: bool,
        fy in prop::option::of(2014_i32..2028),
    ) -> Value {
        let spans = [
            (Some("01-01"), "12-31"),
            (Some("01-01"), "03-31"),
            (Some("04-01"), "06-30"),
            (Some("01-01"), "06-30"),
            (Some("01-01"), "09-30"),
            (Some("10-01"), "12-31"),
            (None, "12-31"),
            (None, "06-30"),
            (Some("02-30"), "12-31"),
        ];
        let (start, end) = spans[shape];
        let tags = METRICS[metric].concepts;
        json!({
            "tag": tags[tag % tags.len()],
            "unit": match METRICS[metric].unit {
                crate::evidence::FactUnit::PerShare => "USD/shares",
                crate::evidence::FactUnit::Shares => "shares",
                _ => "USD",
            },
            "row": {
                "start": start.map(|start| format!("{year}-{start}")),
                "end": format!("{year}-{end}"),
                "val": value,
                "accn": format!("0000000001-{:02}-{:06}", (year + lag) % 100, shape),
                "fy": fy,
                "fp": "FY",
                "form": if annual { "10-K" } else { "10-Q" },
                "filed": format!("{}-02-15", year + 1 + lag),
            }
        })
    }
}

/// A document in the format of the SEC's service.
fn document(rows: &[Value]) -> String {
    let mut tags: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for row in rows {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut written = row["row"].clone();
        let value = text(&written["val"]);
        written["val"] = json!("VALUE");
        let written = written.to_string().replace("\"VALUE\"", &value);
        tags.entry((text(&row["tag"]), text(&row["unit"]))).or_default().push(written);
    }
    let mut taxonomies: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((tag, unit), rows) in tags {
        let (taxonomy, name) = tag.split_once(':').unwrap();
        let concept = format!("\"{name}\":{{\"units\":{{\"{unit}\":[{}]}}}}", rows.join(","));
        taxonomies.entry(taxonomy.to_owned()).or_default().push(concept);
    }
    let taxonomies: Vec<String> = taxonomies
        .into_iter()
        .map(|(taxonomy, concepts)| format!("\"{taxonomy}\":{{{}}}", concepts.join(",")))
        .collect();
    format!("{{\"cik\":1,\"entityName\":\"Any\",\"facts\":{{{}}}}}", taxonomies.join(","))
}

/// Any sheet that can be built can be printed and read back unchanged.
fn check_sheet(bytes: &[u8], as_of: CalendarDay) -> Result<(), TestCaseError> {
    let Ok(facts) = CompanyFacts::parse(bytes) else { return Ok(()) };
    let Ok(sheet) = FactSheet::build(&facts, as_of) else { return Ok(()) };
    for fact in sheet.facts.values() {
        prop_assert!(fact.filed().is_none_or(|filed| filed.filed <= as_of));
    }
    let written = sheet.to_json();
    prop_assert_eq!(&FactSheet::from_json(&written).unwrap(), &sheet);
    prop_assert!(!sheet.table(2_000).is_empty());
    prop_assert_eq!(sheet.rows().len(), sheet.facts.len());
    sheet.facts.keys().for_each(|id| drop(sheet.display_value(id)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_fact_sheet_of_any_rows_round_trips(
        rows in prop::collection::vec(row(), 1..150),
        later in 0_i32..3_000,
    ) {
        let as_of = CalendarDay::MAX.min(CalendarDay::parse("2020-01-01").unwrap().plus_days(later));
        check_sheet(document(&rows).as_bytes(), as_of)?;
        check_sheet(document(&rows).as_bytes(), CalendarDay::MAX)?;
    }

    #[test]
    fn changed_bytes_of_a_real_document_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = read("companyfacts/CIK0000789019.json");
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            // Replace digits by digits to keep the document readable.
            bytes[at] = if bytes[at].is_ascii_digit() { b'0' + byte % 10 } else { byte };
        }
        check_sheet(&bytes, CalendarDay::MAX)?;
    }

    #[test]
    fn changed_bytes_of_a_sheet_are_refused_or_read_as_written(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = MICROSOFT.sheet.to_json();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = if bytes[at].is_ascii_digit() { b'0' + byte % 10 } else { byte };
        }
        if let Ok(sheet) = FactSheet::from_json(&bytes) {
            prop_assert_eq!(sheet.to_json(), bytes);
        }
    }
}
