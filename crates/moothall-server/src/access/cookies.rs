//! The session cookie.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use moothall_store::Credential;

/// Name and attributes of the session cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionCookie {
    name: String,
    /// Sets the `Secure` attribute: the cookie is sent over TLS only.
    secure: bool,
}

impl SessionCookie {
    /// Derives the cookie settings from the address at which browsers reach the server.
    ///
    /// Browsers share cookies between the ports of a host, so the name contains the port: otherwise
    /// two servers on one machine would sign each other out. With TLS, the `__Host-` prefix
    /// prevents other hosts of the same domain from setting the cookie.
    pub(crate) fn of(origin: &str) -> Self {
        let secure = origin.starts_with("https://");
        let port =
            origin.rsplit(':').next().filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
        let prefix = if secure { "__Host-" } else { "" };
        Self { name: format!("{prefix}moothall-{}", port.unwrap_or("session")), secure }
    }

    /// Reads the session secret of a request. Two cookies of this name are treated as none, because
    /// one of them was not set by this server.
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
            (Some(secret), None) => Some(Credential::from_client(secret)),
            _ => None,
        }
    }

    /// Builds the `Set-Cookie` header that starts a session.
    pub(crate) fn give(&self, secret: &Credential, lasts: Duration) -> Option<HeaderValue> {
        self.header(secret.reveal(), lasts.as_secs())
    }

    /// Builds the `Set-Cookie` header that deletes the cookie.
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
