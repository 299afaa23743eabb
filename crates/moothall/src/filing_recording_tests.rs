use super::*;

#[test]
fn a_recording_returns_the_recorded_file() {
    let body = FilingRecording::Bundled.read("/files/company_tickers.json").unwrap();
    assert!(String::from_utf8(body).unwrap().contains("HLXI"));
}

#[test]
fn a_recording_answers_only_known_paths() {
    for path in ["/", "/submissions/CIK0000320193.json", "/files/../Cargo.toml", "/etc/passwd"] {
        assert_eq!(FilingRecording::Bundled.read(path), None, "{path}");
    }
}

#[test]
fn a_recording_does_not_follow_links_out_of_the_directory() {
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("secret"), "secret").unwrap();
    for inner in ["companyfacts", "reference", "real"] {
        fs_err::create_dir(folder.path().join(inner)).unwrap();
    }
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
    };
    link(&outside.path().join("secret"), "reference/company_tickers.json");
    link(outside.path(), "submissions");
    fs_err::write(folder.path().join("real/tickers"), "{}").unwrap();
    link(&folder.path().join("real/tickers"), "reference/company_tickers_exchange.json");
    fs_err::write(outside.path().join("CIK0000000001.json"), "secret").unwrap();
    let recording = FilingRecording::in_folder(folder.path()).unwrap();
    for path in ["/files/company_tickers.json", "/submissions/CIK0000000001.json"] {
        assert_eq!(recording.read(path), None, "{path}");
    }
    let inside = recording.read("/files/company_tickers_exchange.json");
    assert_eq!(inside.as_deref(), Some(b"{}".as_slice()));
}

#[test]
fn a_directory_without_a_recording_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let refused = FilingRecording::in_folder(folder.path()).unwrap_err();
    assert!(refused.message.ends_with(" is not a recording of filings") && refused.hint.is_some());
    assert!(FilingRecording::in_folder(&folder.path().join("missing")).is_err());
}
