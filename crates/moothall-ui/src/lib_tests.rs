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
fn every_address_of_the_interface_is_answered_with_its_page() {
    check("/", "", Some((PAGE, None)));
    check("/runs/7f3a", "", Some((PAGE, None)));
    check("/runs/7f3a/results", "", Some((PAGE, None)));
    check("/apis", "", Some((PAGE, None)));
}

#[test]
fn what_is_missing_in_the_api_or_among_assets_is_not_answered_with_the_page() {
    check("/api/nothing", "", None);
    check("/api", "", None);
    check("/assets/gone-1234.js", "", None);
}

#[test]
fn a_page_is_asked_for_again_and_an_asset_is_not() {
    let page = asset("/", "").unwrap();
    assert!(!page.immutable);
    for file in FILES.iter().filter(|file| file.path.starts_with(HASHED)) {
        assert!(asset(file.path, "").unwrap().immutable, "{}", file.path);
    }
}

#[test]
fn every_form_of_a_file_has_a_tag_of_its_own() {
    for file in FILES.iter().filter(|file| file.br.is_some()) {
        let tags = ["", "gzip", "br, gzip"].map(|accept| asset(file.path, accept).unwrap().etag);
        assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    }
}

#[test]
fn encodings_are_taken_only_where_the_browser_wants_them() {
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
