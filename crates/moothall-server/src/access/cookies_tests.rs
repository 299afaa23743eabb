use super::*;

fn headers(values: &[&str]) -> HeaderMap {
    let pair = |value: &&str| (header::COOKIE, HeaderValue::from_str(value).unwrap());
    values.iter().map(pair).collect()
}

#[test]
fn the_session_cookie_is_bound_to_one_server_and_http_only() {
    let check = |origin: &str, expected: &str| {
        let given =
            SessionCookie::of(origin).give(&Credential::from_client("s3"), Duration::from_secs(60));
        assert_eq!(given.unwrap().to_str().unwrap(), expected);
    };
    check(
        "http://127.0.0.1:7777",
        "moothall-7777=s3; Path=/; Max-Age=60; HttpOnly; SameSite=Strict",
    );
    check(
        "https://moothall.example",
        "__Host-moothall-session=s3; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure",
    );
    check(
        "https://moothall.example:8443",
        "__Host-moothall-8443=s3; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure",
    );
}

#[test]
fn the_session_cookie_is_read_among_other_cookies() {
    let cookies = SessionCookie::of("http://127.0.0.1:7777");
    let read =
        |values: &[&str]| cookies.read(&headers(values)).map(|secret| secret.reveal().to_owned());
    assert_eq!(read(&["theme=dark; moothall-7777=abc; moothall-8888=def"]).as_deref(), Some("abc"));
    assert_eq!(read(&["theme=dark", "moothall-7777=abc"]).as_deref(), Some("abc"));
    for none in [
        &[][..],
        &["theme=dark"],
        &["moothall-8888=abc"],
        &["xmoothall-7777=abc"],
        &["moothall-7777"],
        // Another host of the same domain may have set one of them, and they cannot be told apart.
        &["moothall-7777=abc; moothall-7777=def"],
        &["moothall-7777=abc", "moothall-7777=def"],
    ] {
        assert_eq!(read(none), None, "{none:?}");
    }
}
