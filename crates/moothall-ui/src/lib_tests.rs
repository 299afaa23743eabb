use super::*;

/// Maps a path and `Accept-Encoding` to the expected type and encoding, or to `None`.
#[track_caller]
fn check(path: &str, accept_encoding: &str, expected: Option<(&str, Option<&str>)>) {
    let found = asset(path, accept_encoding);
    let found = found.as_ref().map(|asset| (asset.content_type, asset.encoding));
    assert_eq!(found, expected);
}

const PAGE: &str = "text/html; charset=utf-8";

#[test]
fn every_route_of_the_web_ui_returns_its_page() {
    check("/", "", Some((PAGE, None)));
    check("/runs/7f3a", "", Some((PAGE, None)));
    check("/runs/7f3a/results", "", Some((PAGE, None)));
    check("/apis", "", Some((PAGE, None)));
}

#[test]
fn missing_api_routes_and_assets_do_not_return_the_page() {
    check("/api/nothing", "", None);
    check("/api", "", None);
    check("/assets/gone-1234.js", "", None);
}

#[test]
fn pages_are_revalidated_and_hashed_assets_are_immutable() {
    let page = asset("/", "").unwrap();
    assert!(!page.immutable);
    for file in FILES.iter().filter(|file| file.path.starts_with(HASHED)) {
        assert!(asset(file.path, "").unwrap().immutable, "{}", file.path);
    }
}

#[test]
fn every_encoding_of_a_file_has_its_own_etag() {
    for file in FILES.iter().filter(|file| file.br.is_some()) {
        let tags = ["", "gzip", "br, gzip"].map(|accept| asset(file.path, accept).unwrap().etag);
        assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    }
}

#[test]
fn a_content_encoding_is_used_only_if_the_browser_accepts_it() {
    let cases = [
        ("br", "gzip, deflate, br", true),
        ("br", "gzip, BR;q=0.5", true),
        ("br", "gzip, br;q=0", false),
        ("br", "gzip, br; q=0.0", false),
        ("br", "", false),
        ("gzip", "x-gzip", false),
    ];
    for (encoding, header, expected) in cases {
        assert_eq!(accepts(header, encoding), expected, "{encoding} in {header:?}");
    }
}
