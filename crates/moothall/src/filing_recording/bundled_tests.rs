use moothall_core::evidence::passages::passages;
use moothall_core::evidence::{
    CalendarDay, CompanyFacts, DataCheck, FactSheet, FilerSubmissions, FiscalPeriod, TickerTable,
};

use super::*;

fn sheet(as_of: &str) -> FactSheet {
    let facts = CompanyFacts::parse(read("companyfacts/CIK0009990001.json").unwrap()).unwrap();
    FactSheet::build(&facts, CalendarDay::parse(as_of).unwrap()).unwrap()
}

fn submissions() -> FilerSubmissions {
    FilerSubmissions::parse(read("submissions/CIK0009990001.json").unwrap()).unwrap()
}

#[test]
fn the_bundled_ticker_resolves_to_the_bundled_filer() {
    let table = TickerTable::parse(read("reference/company_tickers.json").unwrap()).unwrap();
    let listing = table.find(&TICKER.parse().unwrap()).unwrap();
    assert_eq!(listing.cik, submissions().cik);
    assert_eq!(listing.title, submissions().name);
    assert!(listing.title.contains("(fictional)"), "{}", listing.title);
}

#[test]
fn bundled_statements_are_consistent_except_for_documented_changes() {
    let sheet = sheet("2026-08-13");
    assert!(sheet.entity.contains("(fictional)"), "{}", sheet.entity);
    for check in &sheet.checks {
        let told = matches!(check, DataCheck::Split { factor: 2, .. })
            || matches!(check, DataCheck::Restated { id, .. } if id.period == FiscalPeriod::Year(2023));
        assert!(told, "{check}");
    }
    let kinds =
        |wanted: fn(&DataCheck) -> bool| sheet.checks.iter().filter(|one| wanted(one)).count();
    assert_eq!(kinds(|check| matches!(check, DataCheck::Split { .. })), 1);
    assert!(kinds(|check| matches!(check, DataCheck::Restated { .. })) >= 8);
}

#[test]
fn years_are_the_sums_of_their_quarters() {
    let sheet = sheet("2026-08-13");
    for metric in ["Revenue", "CostOfRevenue", "OperatingIncome", "NetIncome", "CFO", "Capex"] {
        for year in [2024, 2025] {
            let quarters =
                (1..=4).map(|quarter| sheet.value(metric, FiscalPeriod::Quarter(year, quarter)));
            let sum = quarters.sum::<Option<_>>();
            assert_eq!(sum, sheet.value(metric, FiscalPeriod::Year(year)), "{metric} {year}");
            assert!(sum.is_some(), "{metric} {year}");
        }
    }
}

#[test]
fn the_bundled_numbers_show_the_intended_trends() {
    let sheet = sheet("2026-08-13");
    let years = |metric: &str| -> Vec<_> {
        (2020..=2025).map(|year| sheet.value(metric, FiscalPeriod::Year(year)).unwrap()).collect()
    };
    assert!(years("Revenue").is_sorted());
    assert!(years("GrossMargin").is_sorted_by(|before, after| before >= after));
    assert!(years("Inventory").is_sorted());
    assert!(years("DeferredRevenue").is_sorted());
    let quarters = (2024..=2026).flat_map(|year| (1..=4).map(move |quarter| (year, quarter)));
    let told = quarters
        .filter(|(year, quarter)| {
            sheet.value("Revenue", FiscalPeriod::Quarter(*year, *quarter)).is_some()
        })
        .count();
    assert_eq!(told, 10);
}

#[test]
fn the_bundled_company_has_its_original_numbers_before_the_restatement() {
    let (before, after) = (sheet("2025-02-26"), sheet("2025-02-27"));
    let inventory = |sheet: &FactSheet| sheet.value("Inventory", FiscalPeriod::Year(2023)).unwrap();
    assert_eq!((inventory(&before) - inventory(&after)).to_string(), "6200000");
}

#[test]
fn every_number_has_a_filing_that_is_listed() {
    let submissions = submissions();
    for fact in sheet("2026-08-13").facts.values().filter_map(|fact| fact.filed()) {
        let listed =
            submissions.filings.iter().find(|one| one.accession.as_str() == fact.accession);
        let listed = listed.map(|one| (one.form.as_str(), one.filed));
        assert_eq!(listed, Some((fact.form.as_str(), fact.filed)), "{}", fact.accession);
    }
}

#[test]
fn the_bundled_annual_report_is_marked_fictional_and_has_its_items() {
    let submissions = submissions();
    let report = submissions.newest_annual(CalendarDay::MAX).unwrap();
    let file = format!(
        "archives/9990001/{}/{}",
        report.accession.digits(),
        report.primary_document.as_deref().unwrap()
    );
    let bytes = read(&file).unwrap();
    assert!(String::from_utf8_lossy(bytes).contains("THIS IS NOT A FILING"));
    let found = passages(bytes, report).unwrap();
    for item in ["1", "1A", "7"] {
        let count = found.iter().filter(|passage| passage.item == item).count();
        assert!(count >= 10, "item {item} has {count}");
    }
    assert!(found[0].text.contains("a company invented for demonstration"), "{}", found[0].text);
}
