use moothall_core::consult::EvidenceSource;

use super::*;

#[tokio::test]
async fn gathered_evidence_is_passed_to_its_run_without_reading_twice() {
    let mut filings = EvidenceSources::from_recording(FilingRecording::Bundled).await.unwrap();
    let request = GatherRequest {
        ticker: BUNDLED_TICKER.to_owned(),
        name: None,
        source: EvidenceSource::Filings,
        as_of: None,
        allow_stale: false,
        documents: None,
        news: None,
    };
    let before = filings.gather(&request).await.unwrap();
    filings._server = None;
    assert_eq!(EvidenceGatherer::gather(&filings, &request).await.unwrap(), before);
    // The next request goes to the server, which is stopped.
    assert!(EvidenceGatherer::gather(&filings, &request).await.is_err());
}
