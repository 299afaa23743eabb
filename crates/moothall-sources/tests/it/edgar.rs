//! Tests the EDGAR client against a misbehaving server.

use std::path::Path;
use std::time::Duration;

use moothall_core::evidence::{CalendarDay, Cik};
use moothall_sources::edgar::{
    CacheFreshness, EdgarClient, EdgarEndpoints, EdgarError, EdgarFile, EdgarOptions,
    EdgarRetrySettings, SecContact,
};

use crate::edgar_server::{Answer, Asked, EdgarServer};

const NOW_MS: u64 = 1_794_744_000_000;
const MINUTE: CacheFreshness = CacheFreshness::For(Duration::from_secs(60));

/// Three attempts without delays.
const RETRY: EdgarRetrySettings = EdgarRetrySettings {
    retries: 2,
    first_delay: Duration::ZERO,
    longest_delay: Duration::from_secs(1),
    timeout: Duration::from_secs(20),
};

fn client(base: &str, cache: Option<&Path>, retry: EdgarRetrySettings) -> EdgarClient {
    EdgarClient::new(EdgarOptions {
        endpoints: EdgarEndpoints::at(base),
        contact: SecContact::parse("ada@example.com").ok(),
        cache: cache.map(Path::to_owned),
        retry,
    })
}

async fn get(client: &EdgarClient) -> Result<String, EdgarError> {
    get_at(client, MINUTE, NOW_MS).await
}

async fn get_at(
    client: &EdgarClient,
    freshness: CacheFreshness,
    now_ms: u64,
) -> Result<String, EdgarError> {
    let document = client.get(&EdgarFile::Tickers, freshness, now_ms).await?;
    Ok(String::from_utf8(document.bytes.to_vec()).unwrap())
}

/// Makes one request; returns the result and the number of requests the server received.
async fn outcome(answers: Vec<Answer>) -> (Result<String, EdgarError>, usize) {
    let server = EdgarServer::scripted(answers).await;
    let outcome = get(&client(&server.base, None, RETRY)).await;
    (outcome, server.asked().len())
}

#[tokio::test]
async fn every_edgar_request_names_the_program_and_the_contact() {
    let server = EdgarServer::scripted(vec![Answer::ok("{}")]).await;
    get(&client(&server.base, None, RETRY)).await.unwrap();
    let agent = concat!("moothall/", env!("CARGO_PKG_VERSION"), " ada@example.com").to_owned();
    let path = "/files/company_tickers.json".to_owned();
    assert_eq!(server.asked(), [Asked { path, agent }]);
}

#[tokio::test]
async fn without_a_contact_only_local_servers_are_requested() {
    let options = |base: &str| EdgarOptions {
        endpoints: EdgarEndpoints::at(base),
        contact: None,
        cache: None,
        retry: RETRY,
    };
    let elsewhere = EdgarClient::new(options("https://data.example.invalid"));
    assert_eq!(get(&elsewhere).await, Err(EdgarError::NoContact));
    let server = EdgarServer::scripted(vec![Answer::ok("here")]).await;
    assert_eq!(get(&EdgarClient::new(options(&server.base))).await, Ok("here".to_owned()));
}

#[tokio::test]
async fn a_short_retry_after_of_the_service_is_waited_for() {
    let pause = Answer::Whole(429, &[("retry-after", "0")], Vec::new());
    let answers = vec![pause, Answer::ok("later")];
    assert_eq!(outcome(answers).await, (Ok("later".to_owned()), 2));
}

#[tokio::test]
async fn a_long_retry_after_of_the_service_is_reported_immediately() {
    for pause in ["600", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let headers: &'static [(&str, &str)] = Box::leak(Box::new([("retry-after", pause)]));
        let answers = vec![Answer::Whole(429, headers, Vec::new()), Answer::ok("never")];
        assert_eq!(outcome(answers).await, (Err(EdgarError::RateLimited), 1));
    }
}

#[tokio::test]
async fn server_errors_of_the_service_are_retried_a_limited_number_of_times() {
    let answers = vec![Answer::status(503), Answer::status(500), Answer::ok("third")];
    assert_eq!(outcome(answers).await, (Ok("third".to_owned()), 3));
    let broken = EdgarError::Status { status: 503 };
    assert_eq!(outcome(vec![Answer::status(503)]).await, (Err(broken), 3));
}

#[tokio::test]
async fn refusals_and_missing_documents_are_not_tried_again() {
    let refused = EdgarError::Refused { status: 403 };
    assert_eq!(outcome(vec![Answer::status(403)]).await, (Err(refused), 1));
    assert_eq!(outcome(vec![Answer::status(404)]).await, (Err(EdgarError::NotFound), 1));
}

#[tokio::test]
async fn redirects_of_the_service_are_not_followed() {
    let away = Answer::Whole(302, &[("location", "http://127.0.0.1:1/")], Vec::new());
    let refused = EdgarError::Status { status: 302 };
    assert_eq!(outcome(vec![away]).await, (Err(refused), 1));
}

#[tokio::test]
async fn document_that_breaks_off_is_fetched_again_and_never_used() {
    let cut = || Answer::Cut { announced: 100, body: b"{\"0\"".to_vec() };
    let answers = vec![cut(), Answer::ok("whole")];
    assert_eq!(outcome(answers).await, (Ok("whole".to_owned()), 2));
    let (outcome, asked) = outcome(vec![cut()]).await;
    assert!(matches!(outcome, Err(EdgarError::Transport(_))), "{outcome:?}");
    assert_eq!(asked, 3);
}

#[tokio::test]
async fn document_that_is_announced_or_grows_too_long_is_refused() {
    let announced = Answer::Cut { announced: (64 << 20) + 1, body: b"x".to_vec() };
    assert_eq!(outcome(vec![announced]).await, (Err(EdgarError::TooLarge), 1));
    let grows = Answer::Endless { bytes: (64 << 20) + 1 };
    assert_eq!(outcome(vec![grows]).await, (Err(EdgarError::TooLarge), 1));
}

#[tokio::test]
async fn a_server_that_does_not_answer_times_out() {
    let server = EdgarServer::scripted(vec![Answer::Silence]).await;
    // Long enough for a busy machine to deliver each request before the client gives up.
    let timeout = Duration::from_secs(1);
    let outcome = get(&client(&server.base, None, EdgarRetrySettings { timeout, ..RETRY })).await;
    assert_eq!((outcome, server.asked().len()), (Err(EdgarError::TimedOut(timeout)), 3));
}

#[tokio::test]
async fn server_that_is_not_there_is_a_failed_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let outcome = get(&client(&base, None, RETRY)).await;
    assert!(matches!(outcome, Err(EdgarError::Transport(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_cached_document_is_used_until_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let server = EdgarServer::scripted(vec![Answer::ok("old"), Answer::ok("new")]).await;
    let client = client(&server.base, Some(folder.path()), RETRY);
    let mut seen = Vec::new();
    for later_ms in [0, 60_000, 60_001, 60_002] {
        seen.push(get_at(&client, MINUTE, NOW_MS + later_ms).await.unwrap());
    }
    assert_eq!(seen, ["old", "old", "new", "new"]);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn cached_facts_are_used_until_a_newer_filing() {
    let folder = tempfile::tempdir().unwrap();
    let server = EdgarServer::scripted(vec![Answer::ok("old"), Answer::ok("new")]).await;
    let client = client(&server.base, Some(folder.path()), RETRY);
    let facts = EdgarFile::CompanyFacts(Cik::new(7).unwrap());
    let day = 24 * 60 * 60 * 1000;
    let mut seen = Vec::new();
    // NOW is 2026-11-15.
    for (filed, later_ms) in [("2026-11-14", 0), ("2026-11-14", 90 * day), ("2026-12-01", 91 * day)]
    {
        let freshness = CacheFreshness::UntilFiled { newest: CalendarDay::parse(filed) };
        let document = client.get(&facts, freshness, NOW_MS + later_ms).await.unwrap();
        seen.push(document.bytes.to_vec());
    }
    assert_eq!(seen, [b"old", b"old", b"new"]);
}

#[tokio::test]
async fn kept_document_that_was_changed_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = EdgarServer::scripted(vec![Answer::ok("first"), Answer::ok("again")]).await;
    let client = client(&server.base, Some(folder.path()), RETRY);
    assert_eq!(get_at(&client, CacheFreshness::Forever, NOW_MS).await, Ok("first".to_owned()));
    for file in fs_err::read_dir(folder.path().join("files")).unwrap() {
        fs_err::write(file.unwrap().path(), "forged").unwrap();
    }
    assert_eq!(get_at(&client, CacheFreshness::Forever, NOW_MS).await, Ok("again".to_owned()));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_failed_response_is_not_cached() {
    let folder = tempfile::tempdir().unwrap();
    let server = EdgarServer::scripted(vec![Answer::status(404), Answer::ok("there")]).await;
    let client = client(&server.base, Some(folder.path()), RETRY);
    assert_eq!(get(&client).await, Err(EdgarError::NotFound));
    assert_eq!(get(&client).await, Ok("there".to_owned()));
}

#[tokio::test]
async fn an_unwritable_cache_directory_only_disables_caching() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs_err::write(&file, "in the way").unwrap();
    let server = EdgarServer::scripted(vec![Answer::ok("there")]).await;
    let client = client(&server.base, Some(&file), RETRY);
    assert_eq!(get(&client).await, Ok("there".to_owned()));
    assert_eq!(get(&client).await, Ok("there".to_owned()));
    assert_eq!(server.asked().len(), 2);
}
