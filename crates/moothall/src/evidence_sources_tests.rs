use moothall_core::consult::EvidenceSource;

use super::*;

fn copy_files(from: &Path, to: &Path) {
    for entry in fs_err::read_dir(from).unwrap() {
        let (source, copy) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if source.is_dir() {
            fs_err::create_dir(&copy).unwrap();
            copy_files(&source, &copy);
        } else {
            fs_err::copy(source, copy).unwrap();
        }
    }
}

#[tokio::test]
async fn gathered_evidence_is_passed_to_its_run_without_reading_twice() {
    let recording = tempfile::tempdir().unwrap();
    copy_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/hlxi"), recording.path());
    let folder = FilingRecording::in_folder(recording.path()).unwrap();
    let filings = EvidenceSources::from_recording(folder);
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
    fs_err::remove_dir_all(recording.path()).unwrap();
    assert_eq!(EvidenceGatherer::gather(&filings, &request).await.unwrap(), before);
    // The next request reads the recording, which is gone.
    assert!(EvidenceGatherer::gather(&filings, &request).await.is_err());
}
