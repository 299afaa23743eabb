//! The one cookie.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use moothall_store::Credential;

/// What the session's cookie is called here, and how it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cookies {
    name: String,
    /// Only over TLS.
    secure: bool,
}

impl Cookies {
    /// For browsers that reach the server under this address.
    ///
    /// Browsers do not tell the ports of a machine apart, so the port stands in the name: two
    /// servers on one machine would sign each other out. With TLS, `__Host-` makes sure that no
    /// other name below the same domain can set the cookie.
    pub(crate) fn of(origin: &str) -> Self {
        let secure = origin.starts_with("https://");
        let port =
            origin.rsplit(':').next().filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
        let prefix = if secure { "__Host-" } else { "" };
        Self { name: format!("{prefix}moothall-{}", port.unwrap_or("session")), secure }
    }

    /// The session that a request says it belongs to. Two are as good as none: one of them is not
    /// ours.
    pub(crate) fn read(&self, headers: &HeaderMap) -> Option<Credential> {
        let mut found = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.name)
            .map(|(_, value)| value);
        match (found.next(), found.next()) {
            (Some(secret), None) => Some(Credential::sent(secret)),
            _ => None,
        }
    }

    /// Gives a browser its session.
    pub(crate) fn give(&self, secret: &Credential, lasts: Duration) -> Option<HeaderValue> {
        self.header(secret.reveal(), lasts.as_secs())
    }

    /// Takes it away.
    pub(crate) fn take(&self) -> Option<HeaderValue> {
        self.header("", 0)
    }

    fn header(&self, value: &str, seconds: u64) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        let name = &self.name;
        let text =
            format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        let mut header = HeaderValue::try_from(text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

#[cfg(test)]
#[path = "cookies_tests.rs"]
mod tests;
