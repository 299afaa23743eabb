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
fn server_answers_to_names_of_its_own_machine_and_port_only() {
    for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST:7777", "[::1]:7777"] {
        assert_eq!(asked(Method::GET, host, &[]), None, "{host}");
    }
    for host in ["evil.example:7777", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:7777", ""] {
        assert_eq!(asked(Method::GET, host, &[]), Some(421), "{host}");
    }
}

#[test]
fn page_of_another_site_may_neither_read_nor_change_anything() {
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
fn server_behind_a_name_answers_to_that_name_over_its_own_scheme_only() {
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
fn own_page_a_program_and_a_link_on_another_page_are_let_in() {
    let own = "127.0.0.1:7777";
    let page = [("origin", "http://127.0.0.1:7777"), ("sec-fetch-site", "same-origin")];
    assert_eq!(asked(Method::POST, own, &page), None);
    assert_eq!(asked(Method::POST, own, &[]), None);
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(asked(Method::GET, own, &link), None);
}
