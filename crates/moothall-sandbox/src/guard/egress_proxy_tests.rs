use std::net::Ipv4Addr;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{EgressLog, EgressRules, HostRule, connect_target, is_local};

#[test]
fn a_rule_allows_its_host_and_port_only() {
    let check = |rule: &str, host: &str, port: u16, expected: bool| {
        let allowed = HostRule::parse(rule).unwrap().allows(host, port);
        assert_eq!(allowed, expected, "{rule} {host}:{port}");
    };
    check("api.example.com", "api.example.com", 443, true);
    check("api.example.com", "API.Example.Com.", 443, true);
    check("api.example.com", "api.example.com", 80, false);
    check("api.example.com", "evil.api.example.com", 443, false);
    check("api.example.com", "api.example.com.evil.org", 443, false);
    check("*.example.com", "api.example.com", 443, true);
    check("*.example.com", "example.com", 443, false);
    check("*.example.com", "evilexample.com", 443, false);
    check("host:8443", "host", 8443, true);
    check("[::1]:8443", "::1", 8443, true);
    check("::1", "::1", 443, true);
}

#[test]
fn texts_that_are_no_hosts_are_refused() {
    for text in ["", "*", "*.com", "a b", "host:0", "host:x", "a..b", "https://host", "host/path"] {
        assert!(HostRule::parse(text).is_err(), "{text}");
    }
}

#[test]
fn only_connect_requests_have_a_target() {
    let check = |line: &str, expected: Option<(&str, u16)>| {
        assert_eq!(connect_target(&format!("{line}\r\nHost: x\r\n\r\n")), expected, "{line}");
    };
    check("CONNECT api.example.com:443 HTTP/1.1", Some(("api.example.com", 443)));
    check("CONNECT [::1]:8443 HTTP/1.1", Some(("::1", 8443)));
    check("GET http://api.example.com/ HTTP/1.1", None);
    check("CONNECT api.example.com:443", None);
    check("CONNECT api.example.com:443 HTTP/1.1 x", None);
    check("CONNECT a@b:443 HTTP/1.1", None);
    check("CONNECT host:0 HTTP/1.1", None);
}

#[test]
fn local_addresses_are_recognized_in_every_form() {
    for text in
        ["127.0.0.1", "0.0.0.0", "169.254.169.254", "::1", "::", "fe80::1", "::ffff:127.0.0.1"]
    {
        assert!(is_local(text.parse().unwrap()), "{text}");
    }
    for text in ["93.184.216.34", "10.0.0.5", "2606:2800::1"] {
        assert!(!is_local(text.parse().unwrap()), "{text}");
    }
}

proptest! {
    #[test]
    fn reading_a_request_never_panics(head in "\\PC{0,200}", rule in "\\PC{0,80}") {
        let _ = connect_target(&head);
        if let (Ok(rule), Some((host, port))) = (HostRule::parse(&rule), connect_target(&head)) {
            let _ = rule.allows(host, port);
        }
    }
}

/// Sends a request to a proxy with this rule and returns the answer's first line.
async fn ask(rule: &str, request: &str) -> (String, EgressLog) {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let log = EgressLog::default();
    let rules = EgressRules::new(vec![HostRule::parse(rule).unwrap()]);
    let serving = log.clone();
    let server = tokio::spawn(async move { serving.serve_proxy(listener, rules).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 512];
    let count = stream.read(&mut answer).await.unwrap();
    server.abort();
    let answer = String::from_utf8_lossy(&answer[..count]);
    (answer.lines().next().unwrap_or_default().to_owned(), log)
}

#[tokio::test]
async fn the_proxy_connects_to_allowed_hosts_and_logs_the_others() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = |host: &str| format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n");
    let (answer, log) = ask(&format!("127.0.0.1:{port}"), &connect("127.0.0.1")).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection Established");
    assert!(log.records()[0].allowed);
    let (answer, log) = ask("api.example.com", &connect("127.0.0.1")).await;
    assert_eq!(answer, "HTTP/1.1 403 Forbidden");
    let record = &log.records()[0];
    assert_eq!((record.host.as_str(), record.port, record.allowed), ("127.0.0.1", port, false));
    let (answer, _) = ask("api.example.com", "GET http://api.example.com/ HTTP/1.1\r\n\r\n").await;
    assert_eq!(answer, "HTTP/1.1 405 Method Not Allowed");
    let (answer, _) = ask("api.example.com", &"x".repeat(9000)).await;
    assert_eq!(answer, "HTTP/1.1 400 Bad Request");
}
