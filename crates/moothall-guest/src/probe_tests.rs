use std::net::TcpListener;

use super::{connects, count_user_processes, sees_file};

/// The tests run on the host, where the probe must find everything that a sandbox hides.
#[test]
fn the_probe_finds_a_file_a_port_and_processes_where_nothing_isolates_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    assert!(sees_file(file.path().to_str().unwrap()));
    assert!(connects(listener.local_addr().unwrap().port()));
    assert!(count_user_processes() > 0);
}

#[test]
fn the_probe_reports_a_missing_file_as_held() {
    assert!(!sees_file("/moothall-no-such-file"));
}
