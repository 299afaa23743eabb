//! Helpers for HTTP connections: loopback detection and safe error messages.

use std::net::IpAddr;

use reqwest::Url;

/// Whether the URL points to this machine.
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

/// An error and its causes without the URL, which may contain a key.
pub fn causes(error: &reqwest::Error) -> String {
    let mut text = "connection failed".to_owned();
    for cause in moothall_core::causes(error) {
        text.push_str(&format!(": {cause}"));
    }
    text
}
