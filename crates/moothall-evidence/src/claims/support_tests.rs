//! A fictional company for tests of the checker.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::fact_index::{CitableEvidence, EvidenceIndex, FactRef};
use crate::evidence::{
    CalendarDay, Cik, Fact, FactId, FactSheet, FactSource, FactUnit, FilingEvent, FilingPassage,
    FilingSource, ItemCode,
};

/// Revenue grows, a loss narrows, and there is debt. The fiscal year ends in September.
pub(crate) fn sheet() -> FactSheet {
    let flow = Some("2024-10-01");
    let mut facts = BTreeMap::new();
    for (id, value, unit, start) in [
        ("Revenue:FY2023", "800000000", FactUnit::Money, flow),
        ("Revenue:FY2024", "1000000000", FactUnit::Money, flow),
        ("Revenue:FY2025", "1250000000", FactUnit::Money, flow),
        ("Revenue:FY2025Q3", "310000000", FactUnit::Money, flow),
        ("Revenue:FY2025Q4", "340000000", FactUnit::Money, flow),
        ("Capex:FY2025", "48700000", FactUnit::Money, flow),
        ("NetIncome:FY2023", "-90000000", FactUnit::Money, flow),
        ("NetIncome:FY2024", "-150000000", FactUnit::Money, flow),
        ("NetIncome:FY2025", "-120000000", FactUnit::Money, flow),
        ("NetIncome:FY2025Q4", "-30000000", FactUnit::Money, flow),
        ("EPSDiluted:FY2025", "-1.20", FactUnit::PerShare, flow),
        ("SharesDiluted:FY2025", "100000000", FactUnit::Shares, flow),
        ("Cash:FY2024", "61000000", FactUnit::Money, None),
        ("Cash:FY2025", "74300000", FactUnit::Money, None),
    ] {
        let start = start.and_then(CalendarDay::parse);
        facts.insert(FactId::parse(id).unwrap(), filed(value, unit, start));
    }
    for (id, value, unit, inputs) in [
        ("Revenue.yoy:FY2025", "0.25", FactUnit::Ratio, ["Revenue:FY2025", "Revenue:FY2024"]),
        ("GrossMargin:FY2024", "0.462", FactUnit::Ratio, ["Revenue:FY2024", "Revenue:FY2024"]),
        ("GrossMargin:FY2025", "0.469", FactUnit::Ratio, ["Revenue:FY2025", "Revenue:FY2025"]),
        (
            "GrossMargin.delta:FY2025",
            "0.007",
            FactUnit::Ratio,
            ["GrossMargin:FY2025", "GrossMargin:FY2024"],
        ),
        ("NetMargin:FY2025", "-0.096", FactUnit::Ratio, ["NetIncome:FY2025", "Revenue:FY2025"]),
        ("CurrentRatio:FY2025", "0.89", FactUnit::Multiple, ["Cash:FY2025", "Cash:FY2025"]),
        ("DSO:FY2025", "34.9", FactUnit::Days, ["Cash:FY2025", "Revenue:FY2025"]),
    ] {
        let inputs = inputs.iter().map(|id| FactId::parse(id).unwrap()).collect();
        let source = FactSource::Derived { formula: "made up".to_owned(), inputs };
        let fact = Fact { value: decimal(value), unit, source };
        facts.insert(FactId::parse(id).unwrap(), fact);
    }
    FactSheet {
        entity: "Mill Works".to_owned(),
        cik: Cik::parse("1").unwrap(),
        currency: "USD".to_owned(),
        as_of: day("2025-12-01"),
        facts,
        gaps: Vec::new(),
        checks: Vec::new(),
        fiscal_year_ends: [(2023, "2023-09-30"), (2024, "2024-09-30"), (2025, "2025-09-30")]
            .map(|(year, end)| (year, day(end)))
            .into(),
    }
}

fn filed(value: &str, unit: FactUnit, start: Option<CalendarDay>) -> Fact {
    let filed = FilingSource {
        concept: "us-gaap:MadeUp".to_owned(),
        accession: "0000000001-25-000001".to_owned(),
        form: "10-K".to_owned(),
        filed: day("2025-11-20"),
        start,
        end: day("2025-09-30"),
        restated_from: None,
        split: None,
    };
    Fact { value: decimal(value), unit, source: FactSource::Filed(Box::new(filed)) }
}

pub(crate) const PASSAGE: &str = "We employ approximately 4,200 people in 12 countries. Our largest \
    customer accounted for 18% of net sales, and prices fell 3.5% during the year. We may not be \
    able to pass higher costs on to customers.";

pub(crate) fn passages() -> Vec<FilingPassage> {
    vec![FilingPassage {
        accession: "0000000001-25-000001".to_owned(),
        form: "10-K".to_owned(),
        item: "1A".to_owned(),
        paragraph: 3,
        text: PASSAGE.to_owned(),
    }]
}

pub(crate) fn events() -> Vec<FilingEvent> {
    vec![FilingEvent {
        accession: "0000000001-25-000007".to_owned(),
        form: "8-K".to_owned(),
        filed: day("2025-10-30"),
        report_date: Some(day("2025-10-29")),
        items: ItemCode::list("2.02,9.01"),
    }]
}

pub(crate) fn index(sheet: &FactSheet) -> EvidenceIndex<'_> {
    EvidenceIndex::new(CitableEvidence { sheet: Some(sheet), ..CitableEvidence::default() })
}

/// Looks up facts by id.
pub(crate) fn facts<'a>(index: &EvidenceIndex<'a>, ids: &[&str]) -> Vec<FactRef<'a>> {
    let sheet = index.sheet().unwrap();
    ids.iter().map(|id| sheet.fact(&FactId::parse(id).unwrap()).unwrap()).collect()
}

pub(crate) fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

pub(crate) fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}
