//! Companies whose filings the tests read.

use std::collections::BTreeMap;

use moothall_evidence::claims::{CitableEvidence, ClaimChecker, NewsHeadline};
use moothall_evidence::evidence::events::events;
use moothall_evidence::evidence::{
    CalendarDay, CompanyFacts, FactSheet, FilerSubmissions, FilingEvent, FilingPassage,
};
use serde::Deserialize;

/// Ticker, CIK and whether the list of filings is available.
const COMPANIES: &[(&str, &str, bool)] = &[
    ("AAPL", "CIK0000320193", true),
    ("NVDA", "CIK0001045810", true),
    ("MSFT", "CIK0000789019", true),
    ("MRVL", "CIK0001835632", true),
    ("GOOGL", "CIK0001652044", false),
    ("JPM", "CIK0000019617", false),
    ("SNOW", "CIK0001640147", false),
    ("WMT", "CIK0000104169", false),
    ("LPA", "CIK0001997711", false),
];

/// Additional sources the tests may cite besides facts and events. Written for the tests, not from
/// filings.
const SOURCES: &str = include_str!("sources.json");

pub(crate) struct Company {
    pub(crate) sheet: FactSheet,
    pub(crate) events: Vec<FilingEvent>,
    pub(crate) passages: Vec<FilingPassage>,
    pub(crate) headlines: Vec<NewsHeadline>,
}

impl Company {
    pub(crate) fn checker(&self) -> ClaimChecker<'_> {
        ClaimChecker::new(CitableEvidence {
            sheet: Some(&self.sheet),
            events: &self.events,
            passages: &self.passages,
            headlines: &self.headlines,
            ..CitableEvidence::default()
        })
    }
}

/// Passages and headlines by company.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    passages: BTreeMap<String, Vec<FilingPassage>>,
    headlines: BTreeMap<String, Vec<(u32, String)>>,
}

/// Every company under its ticker.
pub(crate) fn companies() -> BTreeMap<&'static str, Company> {
    let sources: Sources = serde_json::from_str(SOURCES).unwrap();
    let company = |(ticker, file, has_filings): &(&'static str, &str, bool)| {
        let facts = CompanyFacts::parse(&read(&format!("companyfacts/{file}.json"))).unwrap();
        let events = if *has_filings {
            let bytes = read(&format!("submissions/{file}.json"));
            events(FilerSubmissions::parse(&bytes).unwrap().until(CalendarDay::MAX))
        } else {
            Vec::new()
        };
        let headlines = sources.headlines.get(*ticker).cloned().unwrap_or_default();
        let headline = |(number, text)| NewsHeadline {
            number,
            text,
            url: "https://news.example/".to_owned(),
            source: "news.example".to_owned(),
            published: None,
        };
        let company = Company {
            sheet: FactSheet::build(&facts, CalendarDay::MAX).unwrap(),
            events,
            passages: sources.passages.get(*ticker).cloned().unwrap_or_default(),
            headlines: headlines.into_iter().map(headline).collect(),
        };
        (*ticker, company)
    };
    COMPANIES.iter().map(company).collect()
}

#[track_caller]
fn read(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../moothall-testkit/filings");
    fs_err::read(format!("{folder}/{name}")).unwrap()
}
