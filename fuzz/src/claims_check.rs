//! Checking arbitrary text never panics and is deterministic, against any sheet that can be built
//! and with arbitrary passages and headlines.

use std::sync::LazyLock;

use moothall_core::Sha256Hex;
use moothall_core::claims::{
    CitableEvidence, ClaimChecker, ClaimSupport, NewsHeadline, advice_language,
    injected_instructions, numbers, sentences,
};
use moothall_core::evidence::documents::{FoundDocument, documents};
use moothall_core::evidence::{
    CalendarDay, CompanyFacts, DocumentKind, FactSheet, FilingEvent, FilingPassage, ItemCode,
};

/// Separates the parts of the input: the text, a passage, a headline, and facts.
const PART: char = '\u{1e}';

/// A fictional company with two years of sales and a loss.
const FACTS: &str = include_str!("claims_check.facts.json");

static SHEET: LazyLock<Option<FactSheet>> = LazyLock::new(|| sheet(FACTS));

fn sheet(facts: &str) -> Option<FactSheet> {
    let facts = CompanyFacts::parse(facts.as_bytes()).ok()?;
    FactSheet::build(&facts, CalendarDay::MAX).ok()
}

pub fn claims_check(data: &[u8]) {
    let whole = String::from_utf8_lossy(data);
    let mut parts = whole.split(PART);
    let mut part = || parts.next().unwrap_or("");
    let (text, passage, headline, facts) = (part(), part(), part(), part());
    let own = if facts.is_empty() { None } else { sheet(facts) };
    let events = [FilingEvent {
        accession: "0000000001-25-000007".to_owned(),
        form: "8-K".to_owned(),
        filed: CalendarDay::MIN,
        report_date: Some(CalendarDay::MAX),
        items: ItemCode::list("2.02,9.01"),
    }];
    let passages = [FilingPassage {
        accession: "0000000001-25-000001".to_owned(),
        form: "10-K".to_owned(),
        item: "1A".to_owned(),
        paragraph: 3,
        text: passage.to_owned(),
    }];
    let headlines = [NewsHeadline {
        number: 1,
        text: headline.to_owned(),
        url: String::new(),
        source: String::new(),
        published: None,
    }];
    let found = FoundDocument {
        name: "a.md".to_owned(),
        kind: DocumentKind::Markdown,
        sha256: Sha256Hex::of(passage.as_bytes()),
        bytes: passage.len() as u64,
        text: passage.to_owned(),
    };
    let (documents, _) = documents(vec![found]);
    let checker = ClaimChecker::new(CitableEvidence {
        sheet: own.as_ref().or(SHEET.as_ref()),
        events: &events,
        passages: &passages,
        documents: &documents,
        headlines: &headlines,
        calculations: &[],
    });
    check(&checker, text);
    for source in [text, passage, headline] {
        let _ = (advice_language(source), injected_instructions(source));
    }
}

fn check(checker: &ClaimChecker<'_>, text: &str) {
    let claims = checker.check(text);
    assert_eq!(claims, checker.check(text));
    let found = sentences(text);
    assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for claim in &claims {
        assert!((claim.sentence as usize) < found.len().max(1));
        assert_eq!(claim.finding("m1").is_some(), claim.verdict.severity().is_some());
    }
    for range in found {
        let sentence = &text[range];
        for number in numbers(sentence) {
            assert!(sentence.get(number.start..number.end).is_some());
        }
    }
    let support = ClaimSupport::of(&claims);
    assert_eq!(support.supported + support.assumed + support.flagged, support.total);
}
