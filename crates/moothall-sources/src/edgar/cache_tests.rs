use tempfile::TempDir;

use super::*;

const URL: &str = "https://data.sec.gov/submissions/CIK0000320193.json";

fn document(text: &str) -> EdgarDocument {
    EdgarDocument { bytes: text.as_bytes().into(), sha256: Sha256Hex::of(text.as_bytes()) }
}

fn kept(folder: &TempDir, text: &str) -> EdgarDocument {
    let document = document(text);
    let entry = EdgarCacheEntry {
        url: URL.to_owned(),
        sha256: document.sha256,
        bytes: document.bytes.len() as u64,
        status: 200,
        fetched_at_ms: 1_763_000_000_000,
    };
    keep(folder.path(), &entry, &document).unwrap();
    document
}

#[track_caller]
fn check(folder: &TempDir, expected: Option<EdgarDocument>) {
    assert_eq!(find(folder.path(), URL, &|_| true), expected);
}

#[test]
fn a_cached_document_is_found_by_its_url() {
    let folder = tempfile::tempdir().unwrap();
    check(&folder, None);
    let document = kept(&folder, "one");
    check(&folder, Some(document));
    assert_eq!(find(folder.path(), "https://data.sec.gov/other", &|_| true), None);
}

#[test]
fn a_newer_document_replaces_the_cached_one() {
    let folder = tempfile::tempdir().unwrap();
    kept(&folder, "one");
    let newer = kept(&folder, "two");
    check(&folder, Some(newer));
}

#[test]
fn a_cached_document_that_is_not_fresh_is_not_returned() {
    let folder = tempfile::tempdir().unwrap();
    kept(&folder, "one");
    let older = |entry: &EdgarCacheEntry| entry.fetched_at_ms < 1_763_000_000_000;
    assert_eq!(find(folder.path(), URL, &older), None);
}

#[test]
fn a_cached_document_with_a_wrong_hash_is_not_returned() {
    let folder = tempfile::tempdir().unwrap();
    let document = kept(&folder, "one");
    let path = blob_path(folder.path(), document.sha256);
    for broken in ["onf", "on", ""] {
        fs_err::write(&path, broken).unwrap();
        check(&folder, None);
    }
    fs_err::remove_file(&path).unwrap();
    check(&folder, None);
}

#[test]
fn an_invalid_or_mismatched_cache_entry_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let document = kept(&folder, "one");
    let path = entry_path(folder.path(), URL);
    let text = fs_err::read_to_string(&path).unwrap();
    let long = format!("{text}{}", " ".repeat(20_000));
    for broken in ["", "{}", "null", &text.replace("submissions", "submission"), &long] {
        fs_err::write(&path, broken).unwrap();
        check(&folder, None);
    }
    fs_err::write(&path, text).unwrap();
    check(&folder, Some(document));
}

#[test]
fn a_cache_entry_records_its_url_and_fetch_time() {
    let folder = tempfile::tempdir().unwrap();
    let document = kept(&folder, "one");
    let written = fs_err::read_to_string(entry_path(folder.path(), URL)).unwrap();
    let expected = format!(
        r#"{{"url":"{URL}","sha256":"{}","bytes":3,"status":200,"fetched_at_ms":1763000000000}}"#,
        document.sha256
    );
    assert_eq!(written, expected);
}

#[test]
fn no_temporary_files_remain_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    kept(&folder, "one");
    for inner in ["index", "files"] {
        let names: Vec<_> = fs_err::read_dir(folder.path().join(inner))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.len() == 1 && !names[0].starts_with('.'), "{names:?}");
    }
}
