//! What everyone who opens a connection must know: who is on this machine, and what may be said of a
//! connection that failed.

use std::net::IpAddr;

use reqwest::Url;

/// Whether whoever answers there is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// An error with its causes, without the address: people put keys there, and whoever was asked is
/// named anyway.
pub fn causes(error: &reqwest::Error) -> String {
    let mut text = "the connection failed".to_owned();
    for cause in moothall_core::causes(error) {
        text.push_str(&format!(": {cause}"));
    }
    text
}
