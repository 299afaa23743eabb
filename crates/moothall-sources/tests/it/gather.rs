//! Evidence about the fictional company, from its recording and from damaged copies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moothall_core::consult::{EvidenceSource, GatherFailureKind, GatherRequest};
use moothall_core::evidence::{
    CalendarDay, CompanyProfile, Evidence, FiscalPeriod, Provenance, Ticker,
};
use moothall_sources::edgar::{EdgarClient, EdgarEndpoints, EdgarOptions, EdgarRetrySettings};
use moothall_sources::{EvidenceOrigin, FilingGatherer, GatherError};

use crate::edgar_server::{Answer, EdgarServer};

const SUBMISSIONS: &str = "/submissions/CIK0009990001.json";
const FACTS: &str = "/api/xbrl/companyfacts/CIK0009990001.json";
const TICKERS: &str = "/files/company_tickers.json";
/// 2026-11-15.
const NOW_MS: u64 = 1_794_744_000_000;
const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1000;

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../moothall/recordings/hlxi")
}

fn fiction() -> EvidenceOrigin {
    EvidenceOrigin::Fiction { name: "hlxi".to_owned() }
}

fn recorded() -> EvidenceOrigin {
    EvidenceOrigin::Recording { name: "folder".to_owned() }
}

fn request() -> GatherRequest {
    GatherRequest {
        ticker: "HLXI".to_owned(),
        source: EvidenceSource::Filings,
        as_of: None,
        allow_stale: false,
        name: None,
        documents: None,
        news: None,
    }
}

fn as_of(day: &str) -> GatherRequest {
    GatherRequest { as_of: CalendarDay::parse(day), ..request() }
}

async fn gather(
    origin: EvidenceOrigin,
    instead: impl IntoIterator<Item = (&'static str, Answer)>,
    request: GatherRequest,
    now_ms: u64,
) -> Result<Evidence, GatherError> {
    let instead: BTreeMap<_, _> = instead.into_iter().collect();
    let server = EdgarServer::recording(recording(), instead).await;
    let client = EdgarClient::new(EdgarOptions {
        endpoints: EdgarEndpoints::at(&server.base),
        contact: None,
        cache: None,
        retry: EdgarRetrySettings { retries: 0, ..EdgarRetrySettings::default() },
    });
    FilingGatherer::new(client, origin).gather(&request, now_ms).await
}

/// The failure caused by a damaged recording.
async fn failure(instead: impl IntoIterator<Item = (&'static str, Answer)>) -> GatherFailureKind {
    gather(fiction(), instead, request(), NOW_MS).await.unwrap_err().kind
}

#[tokio::test]
async fn everything_is_gathered_about_the_fictional_company() {
    let evidence = gather(fiction(), [], request(), NOW_MS).await.unwrap();
    assert_eq!(
        evidence.company,
        CompanyProfile {
            name: "Helix Instruments, Inc. (fictional)".to_owned(),
            ticker: Some(Ticker::parse("HLXI").unwrap()),
            cik: moothall_core::evidence::Cik::new(9_990_001),
            industry: Some("Laboratory Analytical Instruments".to_owned()),
            fiscal_year_end: Some("12-31".to_owned()),
            former_names: vec!["HELIX CHROMATOGRAPHY INC".to_owned()],
            fictional: true,
        }
    );
    assert_eq!(evidence.provenance, Provenance::Recorded { name: "hlxi".to_owned() });
    let sheet = evidence.sheet.as_ref().unwrap();
    assert_eq!(sheet.as_of, CalendarDay::parse("2026-08-13").unwrap());
    let revenue = sheet.value("Revenue", FiscalPeriod::Year(2025)).unwrap();
    assert_eq!(revenue.to_string(), "1214900000");
    assert_eq!(evidence.events.len(), 26);
    let items: Vec<&str> = evidence.passages.iter().map(|passage| passage.item.as_str()).collect();
    let count = |item: &str| items.iter().filter(|other| **other == item).count();
    assert!(["1", "1A", "7"].iter().all(|item| count(item) >= 10), "{items:?}");
    assert_eq!(evidence.missing, [""; 0]);
    let urls: Vec<&str> = evidence.sources.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "recording:hlxi/submissions/CIK0009990001.json",
            "recording:hlxi/api/xbrl/companyfacts/CIK0009990001.json",
            "recording:hlxi/Archives/edgar/data/9990001/000999000126000008/hlxi-20251231.htm",
        ]
    );
    assert_eq!(evidence.warnings(), [""; 0]);
}

#[tokio::test]
async fn the_annual_report_is_fetched_from_the_archives_once_and_kept() {
    const REPORT: &str = "/Archives/edgar/data/9990001/000999000126000008/hlxi-20251231.htm";
    let server = EdgarServer::recording(recording(), BTreeMap::new()).await;
    let cache = tempfile::tempdir().unwrap();
    let gatherer = || {
        let client = EdgarClient::new(EdgarOptions {
            endpoints: EdgarEndpoints::at(&server.base),
            contact: None,
            cache: Some(cache.path().to_owned()),
            retry: EdgarRetrySettings { retries: 0, ..EdgarRetrySettings::default() },
        });
        FilingGatherer::new(client, fiction())
    };
    let first = gatherer().gather(&request(), NOW_MS).await.unwrap();
    let later = gatherer().gather(&request(), NOW_MS + YEAR_MS).await.unwrap();
    assert!(!first.passages.is_empty());
    assert_eq!(first.passages, later.passages);
    assert_eq!(server.asked().iter().filter(|asked| asked.path == REPORT).count(), 1);
}

#[tokio::test]
async fn documents_of_a_recording_are_named_by_their_address_at_the_sec() {
    let evidence = gather(recorded(), [], request(), NOW_MS).await.unwrap();
    assert_eq!(evidence.sources[0].url, "https://data.sec.gov/submissions/CIK0009990001.json");
}

#[tokio::test]
async fn gathered_evidence_round_trips_and_is_deterministic() {
    let evidence = gather(fiction(), [], request(), NOW_MS).await.unwrap();
    let written = serde_json::to_string(&evidence).unwrap();
    assert_eq!(serde_json::from_str::<Evidence>(&written).unwrap(), evidence);
    assert_eq!(gather(fiction(), [], request(), NOW_MS + 50 * YEAR_MS).await.unwrap(), evidence);
}

#[tokio::test]
async fn evidence_as_of_a_day_excludes_later_filings() {
    let evidence = gather(fiction(), [], as_of("2025-10-20"), NOW_MS).await.unwrap();
    let sheet = evidence.sheet.as_ref().unwrap();
    let day = CalendarDay::parse("2025-10-20").unwrap();
    assert_eq!(sheet.as_of, day);
    assert!(sheet.facts.values().filter_map(|fact| fact.filed()).all(|filed| filed.filed <= day));
    assert_eq!(sheet.value("Revenue", FiscalPeriod::Year(2025)), None);
    assert_eq!(evidence.events[0].filed, CalendarDay::parse("2025-10-09").unwrap());
    assert_eq!(evidence.passages, []);
    assert_eq!(
        evidence.missing,
        ["text of the annual report (10-K of 2025-02-27): document not found"]
    );
}

#[tokio::test]
async fn a_missing_list_of_filings_is_reported_and_the_rest_is_gathered() {
    let evidence =
        gather(fiction(), [(SUBMISSIONS, Answer::status(404))], request(), NOW_MS).await.unwrap();
    assert_eq!((evidence.events.len(), evidence.passages.len()), (0, 0));
    assert_eq!(evidence.missing, ["list of filings: not found; events and passages are missing"]);
    assert_eq!(evidence.sheet.unwrap().as_of, CalendarDay::parse("2026-07-30").unwrap());
}

#[tokio::test]
async fn gathering_fails_without_facts() {
    assert_eq!(failure([(FACTS, Answer::status(404))]).await, GatherFailureKind::NoFacts);
    let early = gather(fiction(), [], as_of("2020-01-01"), NOW_MS).await.unwrap_err();
    assert_eq!(early.kind, GatherFailureKind::NoFacts);
}

#[tokio::test]
async fn gathering_fails_on_unreadable_documents() {
    for path in [TICKERS, SUBMISSIONS, FACTS] {
        for body in ["", "{", "<html>not JSON</html>"] {
            let kind = failure([(path, Answer::ok(body))]).await;
            assert_eq!(kind, GatherFailureKind::Unreadable, "{path} {body}");
        }
        let kind = failure([(path, Answer::status(500))]).await;
        assert_eq!(kind, GatherFailureKind::Unavailable, "{path}");
    }
}

#[tokio::test]
async fn documents_about_another_filer_are_refused() {
    for path in [SUBMISSIONS, FACTS] {
        let folder = if path == FACTS { "companyfacts" } else { "submissions" };
        let file = recording().join(folder).join("CIK0009990001.json");
        let other = fs_err::read_to_string(file).unwrap().replacen("9990001", "9990002", 1);
        assert_eq!(failure([(path, Answer::ok(other))]).await, GatherFailureKind::Unreadable);
    }
}

#[tokio::test]
async fn unknown_ticker_is_refused_with_the_nearest_one() {
    let typed = GatherRequest { ticker: "HXLI".to_owned(), ..request() };
    let error = gather(fiction(), [], typed, NOW_MS).await.unwrap_err();
    assert_eq!(error.kind, GatherFailureKind::UnknownTicker);
    assert_eq!(error.detail, "no company has the ticker HXLI");
    let hint = "did you mean HLXI (Helix Instruments, Inc. (fictional))?";
    assert_eq!(error.hint.as_deref(), Some(hint));
}

#[tokio::test]
async fn ticker_of_two_filers_is_refused_with_both() {
    let rows = r#"{"0": {"cik_str": 1, "ticker": "HLXI", "title": "One"}, "1": {"cik_str": 2, "ticker": "HLXI", "title": "Two"}}"#;
    let error = gather(fiction(), [(TICKERS, Answer::ok(rows))], request(), NOW_MS).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, GatherFailureKind::AmbiguousTicker);
    let words = "several filers have the ticker HLXI: One (CIK 0000000001), Two (CIK 0000000002)";
    assert_eq!(error.detail, words);
}

#[tokio::test]
async fn the_second_ticker_list_is_used_if_the_first_lacks_the_symbol() {
    let first = r#"{"0": {"cik_str": 1, "ticker": "ONE", "title": "One"}}"#;
    let second = r#"{"fields": ["cik", "name", "ticker", "exchange"], "data": [[9990001, "Helix", "HLXI", null]]}"#;
    let instead = [
        (TICKERS, Answer::ok(first)),
        ("/files/company_tickers_exchange.json", Answer::ok(second)),
    ];
    let evidence = gather(fiction(), instead, request(), NOW_MS).await.unwrap();
    assert_eq!(evidence.company.cik, moothall_core::evidence::Cik::new(9_990_001));
}

#[tokio::test]
async fn company_without_an_annual_report_for_eighteen_months_is_stale() {
    let later = NOW_MS + YEAR_MS;
    let error = gather(recorded(), [], request(), later).await.unwrap_err();
    assert_eq!(error.kind, GatherFailureKind::Stale);
    assert_eq!(
        error.detail,
        "the last annual report of HLXI was filed on 2026-02-26, more than 18 months before 2027-11-15"
    );
    let hint = "use `--as-of 2026-07-30` for the company as of that day, or `--allow-stale` to use it anyway";
    assert_eq!(error.hint.as_deref(), Some(hint));
    let allowed = GatherRequest { allow_stale: true, ..request() };
    assert!(gather(recorded(), [], allowed, later).await.is_ok());
    assert!(gather(recorded(), [], as_of("2026-07-30"), later).await.is_ok());
    assert!(gather(fiction(), [], request(), later).await.is_ok());
    let no_list = [(SUBMISSIONS, Answer::status(404))];
    let error = gather(recorded(), no_list, request(), later).await.unwrap_err();
    assert_eq!(error.kind, GatherFailureKind::Stale);
}

#[tokio::test]
async fn evidence_from_the_live_service_is_as_of_today() {
    let evidence = gather(EvidenceOrigin::Service, [], request(), NOW_MS).await.unwrap();
    assert_eq!(evidence.provenance, Provenance::Filings);
    assert_eq!(evidence.sheet.as_ref().unwrap().as_of, CalendarDay::parse("2026-11-15").unwrap());
    assert!(!evidence.company.fictional);
    assert_eq!(evidence.warnings(), ["the newest report used is 108 days old: 10-Q of 2026-07-30"]);
}

#[tokio::test]
async fn announced_results_that_are_not_in_the_facts_cause_a_warning() {
    let evidence = gather(fiction(), [], as_of("2026-07-29"), NOW_MS).await.unwrap();
    assert_eq!(
        evidence.warnings(),
        ["an 8-K of 2026-07-29 announces results that are not in these facts"]
    );
}
