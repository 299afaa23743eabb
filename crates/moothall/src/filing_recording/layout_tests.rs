use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(path: &str, expected: Option<&str>) {
    assert_eq!(recording_path(path).as_deref(), expected, "{path}");
}

#[test]
fn paths_of_the_sec_are_files_of_a_recording() {
    check("/files/company_tickers.json", Some("reference/company_tickers.json"));
    check("/submissions/CIK0000320193.json", Some("submissions/CIK0000320193.json"));
    check("/api/xbrl/companyfacts/CIK0000320193.json", Some("companyfacts/CIK0000320193.json"));
    check(
        "/Archives/edgar/data/320193/000032019325000079/aapl-20250927.htm",
        Some("archives/320193/000032019325000079/aapl-20250927.htm"),
    );
}

#[test]
fn other_paths_map_to_no_file_of_a_recording() {
    for path in [
        "",
        "/",
        "files/company_tickers.json",
        "//files/company_tickers.json",
        "/files/../files/company_tickers.json",
        "/files/company_tickers.json?x=1",
        "/files/company_tickers.json/",
        "/submissions/CIK320193.json",
        "/submissions/CIK0000320193.JSON",
        "/submissions/..%2f..%2fetc%2fpasswd",
        "/submissions/../../../etc/passwd",
        "/Archives/edgar/data/320193/000032019325000079/..",
        "/Archives/edgar/data/320193/../000032019325000079/a.htm",
        "/Archives/edgar/data/320193/000032019325000079/.hidden",
        "/Archives/edgar/data/320193/000032019325000079/a/b.htm",
        "/Archives/edgar/data/../000032019325000079/a.htm",
        "/PROVENANCE.md",
        "/etc/passwd",
    ] {
        check(path, None);
    }
}

proptest! {
    #[test]
    fn no_path_escapes_the_recording(path in "/?(files|submissions|Archives|edgar|data|api|xbrl|companyfacts|CIK[0-9]{9,11}\\.json|[0-9]{1,18}|\\.\\.?|[a-z./%\\\\]{0,8}|/){0,12}") {
        if let Some(file) = recording_path(&path) {
            prop_assert!(!file.starts_with('/'));
            for part in file.split('/') {
                prop_assert!(!part.is_empty() && !part.starts_with('.'));
                prop_assert!(part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)));
            }
        }
    }
}
