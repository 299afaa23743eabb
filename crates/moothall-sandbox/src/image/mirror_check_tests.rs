use std::net::TcpListener;

use super::*;

fn etc(uri: &str) -> tempfile::TempDir {
    let etc = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(etc.path().join("apt/sources.list.d")).unwrap();
    fs_err::write(etc.path().join("os-release"), "ID=debian\nVERSION_CODENAME=bookworm\n").unwrap();
    let stanza = format!("Types: deb\nURIs: {uri}\nSuites: bookworm\nComponents: main\n");
    fs_err::write(etc.path().join("apt/sources.list.d/debian.sources"), stanza).unwrap();
    etc
}

async fn check(etc: &tempfile::TempDir) -> bool {
    require_mirror(etc.path(), "bookworm", &BuildOptions::default()).await.is_ok()
}

#[tokio::test]
async fn a_mirror_that_refuses_connections_is_reported_at_once() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let etc = etc(&format!("http://127.0.0.1:{port}/debian"));
    assert!(check(&etc).await);
    drop(listener);
    assert!(!check(&etc).await);
}

#[tokio::test]
async fn apt_decides_if_there_is_a_proxy_or_a_source_that_is_not_http() {
    let closed = etc("http://127.0.0.1:1/debian");
    assert!(!check(&closed).await);
    let proxy = "Acquire::http::Proxy \"http://127.0.0.1:1\";\n";
    fs_err::write(closed.path().join("apt/apt.conf"), proxy).unwrap();
    assert!(check(&closed).await);
    assert!(check(&etc("file:/srv/debian")).await);
}

#[test]
fn the_address_of_a_source_is_its_host_and_port() {
    let of = |uri: &str| addresses(&format!("Types: deb\nURIs: {uri}\n"));
    let one = |host: &str, port| Some(vec![(host.to_owned(), port)]);
    assert_eq!(of("http://mirror.example/debian"), one("mirror.example", 80));
    assert_eq!(of("https://a:b@mirror.example:8443/debian"), one("mirror.example", 8443));
    assert_eq!(of("http://[::1]:90/debian"), one("::1", 90));
    assert_eq!(of("http://one.example/debian copy:/srv"), None);
}
