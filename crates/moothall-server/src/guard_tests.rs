use super::*;

fn asked(method: Method, host: &str, said: &[(&'static str, &str)]) -> Option<u16> {
    let guard = OriginGuard::local("127.0.0.1:7777".parse().unwrap());
    let headers = said
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect();
    guard.refuse(&method, &headers, Some(host)).map(|problem| problem.status)
}

#[test]
fn the_server_accepts_only_its_own_host_names_and_port() {
    for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST:7777", "[::1]:7777"] {
        assert_eq!(asked(Method::GET, host, &[]), None, "{host}");
    }
    for host in ["evil.example:7777", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:7777", ""] {
        assert_eq!(asked(Method::GET, host, &[]), Some(421), "{host}");
    }
}

#[test]
fn requests_from_pages_of_other_sites_are_refused() {
    let own = "127.0.0.1:7777";
    let evil = [("origin", "http://evil.example")];
    assert_eq!(asked(Method::POST, own, &evil), Some(403));
    assert_eq!(asked(Method::GET, own, &evil), Some(403));
    assert_eq!(asked(Method::POST, own, &[("origin", "null")]), Some(403));
    assert_eq!(asked(Method::POST, own, &[("origin", "http://127.0.0.1:7778")]), Some(403));
    assert_eq!(asked(Method::POST, own, &[("sec-fetch-site", "cross-site")]), Some(403));
    let image = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(asked(Method::GET, own, &image), Some(403));
}

#[test]
fn a_server_with_a_public_url_accepts_only_that_name_and_scheme() {
    let guard = OriginGuard::named("https://moothall.example").unwrap();
    let asked = |host: &str, origin: &str| {
        let headers = [(header::ORIGIN, origin.parse().unwrap())].into_iter().collect();
        guard.refuse(&Method::POST, &headers, Some(host)).map(|problem| problem.status)
    };
    assert_eq!(asked("moothall.example", "https://moothall.example"), None);
    assert_eq!(asked("moothall.example", "http://moothall.example"), Some(403));
    assert_eq!(asked("moothall.example", "https://moothall.example.evil"), Some(403));
    assert_eq!(asked("127.0.0.1:7777", "https://moothall.example"), Some(421));
    for wrong in
        ["moothall.example", "ftp://a", "https://", "https://a/b", "https://a?b", "https://u@a"]
    {
        assert_eq!(OriginGuard::named(wrong), None, "{wrong}");
    }
}

#[test]
fn own_pages_programs_and_links_from_other_pages_are_allowed() {
    let own = "127.0.0.1:7777";
    let page = [("origin", "http://127.0.0.1:7777"), ("sec-fetch-site", "same-origin")];
    assert_eq!(asked(Method::POST, own, &page), None);
    assert_eq!(asked(Method::POST, own, &[]), None);
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(asked(Method::GET, own, &link), None);
}
