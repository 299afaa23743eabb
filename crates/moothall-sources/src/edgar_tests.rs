use super::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn cik() -> Cik {
    Cik::new(320_193).unwrap()
}

#[test]
fn documents_have_the_addresses_of_the_service() {
    let archive = EdgarFile::Archive {
        cik: cik(),
        accession: AccessionNumber::parse("0000320193-25-000079").unwrap(),
        document: "aapl-20250927.htm".to_owned(),
    };
    let urls = [
        EdgarFile::Tickers,
        EdgarFile::TickersWithExchanges,
        EdgarFile::Submissions(cik()),
        EdgarFile::CompanyFacts(cik()),
        archive,
    ]
    .map(|file| file.public_url());
    assert_eq!(
        urls,
        [
            "https://www.sec.gov/files/company_tickers.json",
            "https://www.sec.gov/files/company_tickers_exchange.json",
            "https://data.sec.gov/submissions/CIK0000320193.json",
            "https://data.sec.gov/api/xbrl/companyfacts/CIK0000320193.json",
            "https://www.sec.gov/Archives/edgar/data/320193/000032019325000079/aapl-20250927.htm",
        ]
    );
}

#[test]
fn base_address_may_end_with_a_slash() {
    let endpoints = EdgarEndpoints::at("http://127.0.0.1:1/");
    assert_eq!(endpoints.url(&EdgarFile::Tickers), "http://127.0.0.1:1/files/company_tickers.json");
}

#[track_caller]
fn check(freshness: CacheFreshness, fetched_at_ms: u64, now_ms: u64, expected: bool) {
    assert_eq!(freshness.allows(fetched_at_ms, now_ms), expected);
}

#[test]
fn a_cached_response_is_fresh_only_for_its_lifetime() {
    let minute = CacheFreshness::For(Duration::from_secs(60));
    check(minute, 1_000, 61_000, true);
    check(minute, 1_000, 61_001, false);
    check(CacheFreshness::Forever, 0, u64::MAX, true);
}

#[test]
fn a_cached_response_from_the_future_is_not_fresh() {
    check(CacheFreshness::Forever, 1_001, 1_000, false);
    check(CacheFreshness::For(Duration::from_secs(60)), 1_001, 1_000, false);
}

#[test]
fn facts_are_fresh_until_something_is_filed_on_their_day_or_later() {
    // Fetched on 1970-01-11.
    let fetched = 10 * DAY_MS + 5;
    let until = |text: &str| CacheFreshness::UntilFiled { newest: Some(day(text)) };
    check(until("1970-01-10"), fetched, fetched + 300 * DAY_MS, true);
    check(until("1970-01-11"), fetched, fetched + 60_000, true);
    check(until("1970-01-11"), fetched, fetched + 60_001, false);
    check(until("1970-02-01"), fetched, fetched + DAY_MS, false);
}

#[test]
fn facts_without_a_list_of_filings_are_fresh_for_a_day() {
    let unknown = CacheFreshness::UntilFiled { newest: None };
    check(unknown, 0, DAY_MS, true);
    check(unknown, 0, DAY_MS + 1, false);
}

#[test]
fn only_temporary_edgar_errors_are_retryable() {
    let cured = [
        EdgarError::RateLimited,
        EdgarError::Status { status: 503 },
        EdgarError::Transport(String::new()),
        EdgarError::TimedOut(Duration::ZERO),
    ];
    assert!(cured.iter().all(EdgarError::is_retryable));
    let not = [
        EdgarError::NoContact,
        EdgarError::NotFound,
        EdgarError::Refused { status: 403 },
        EdgarError::Status { status: 302 },
        EdgarError::TooLarge,
    ];
    assert!(!not.iter().any(EdgarError::is_retryable));
}

#[tokio::test]
async fn a_recording_answers_without_an_http_client_and_reports_missing_files() {
    #[derive(Debug)]
    struct OneFile;
    impl RecordedResponses for OneFile {
        fn read(&self, path: &str) -> Option<Vec<u8>> {
            (path == "/files/company_tickers.json").then(|| b"{}".to_vec())
        }
    }
    let client = EdgarClient::from_recording(Arc::new(OneFile));
    let tickers = client.get(&EdgarFile::Tickers, CacheFreshness::Forever, 0).await.unwrap();
    assert_eq!(&*tickers.bytes, b"{}");
    let missing = client.get(&EdgarFile::Submissions(cik()), CacheFreshness::Forever, 0).await;
    assert_eq!(missing, Err(EdgarError::NotFound));
}
