//! What keeps other people's pages away from a server on one's own machine, and what every answer
//! tells the browser.
//!
//! A page of a stranger can make a browser send requests to 127.0.0.1, and can have its own name
//! point there (DNS rebinding). So the name that was asked for must be one of this machine's, and
//! whoever changes something must come from our own page or from no page at all.

use moothall_core::ErrorCode;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::Problem;
use crate::plain_page::plain_page;

/// The policy of every page: nothing from elsewhere, no script or style in the HTML, no frame around
/// it. React sets single properties of elements by script, which this allows.
const CSP: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
                   form-action 'self'; frame-ancestors 'none'";

/// The policy of an exported memo, which is one file with its style in it, and without scripts.
pub(crate) const EXPORT_CSP: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                                     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// For a year, browsers ask for this host with TLS only. Sent only if the public URL has TLS.
const HSTS: &str = "max-age=31536000";

/// Sent with every response.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // Not `no-referrer`: with it, browsers send `Origin: null` even from our own sign-in form.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// The names under which a server may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// As `Host` has them, in small letters.
    hosts: Vec<String>,
    /// How our own pages are fetched.
    scheme: &'static str,
}

/// Asked by machines under whatever address they know, and answered without looking at anything.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

impl Guard {
    /// Of a server that listens on this address of its own machine.
    pub fn local(address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts: Vec<String> = ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .map(|name| format!("{name}:{port}"))
            .collect();
        hosts.push(address.to_string());
        if port == 80 {
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(str::to_owned));
        }
        Self { hosts, scheme: "http://" }
    }

    /// Of a server that browsers reach under this address, such as `https://moothall.example.com`,
    /// and under no other. `None` where it is not an address of that form.
    pub fn named(origin: &str) -> Option<Self> {
        let (scheme, host) = ["https://", "http://"]
            .into_iter()
            .find_map(|scheme| Some((scheme, origin.strip_prefix(scheme)?)))?;
        let plain =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':' | b'[' | b']');
        let is_name = !host.is_empty() && host.bytes().all(plain);
        is_name.then(|| Self { hosts: vec![host.to_ascii_lowercase()], scheme })
    }

    fn refuse(&self, method: &Method, headers: &HeaderMap, host: Option<&str>) -> Option<Problem> {
        let host = host.map(str::to_ascii_lowercase);
        let Some(host) = host.filter(|host| self.hosts.contains(host)) else {
            return Some(
                Problem::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    ErrorCode::HostRefused,
                    "this server is not called by that name",
                )
                .with_hint("use the address that `moothall serve` prints"),
            );
        };
        let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let foreign_origin = text(&header::ORIGIN).is_some_and(|origin| {
            let name = origin.strip_prefix(self.scheme);
            name.map(str::to_ascii_lowercase).as_deref() != Some(&*host)
        });
        let changes = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        // A link on another page may lead here, but nothing else there may reach us.
        let foreign_site = text(&SEC_FETCH_SITE).is_some_and(|site| match site {
            "same-origin" | "none" => false,
            _ => changes || text(&SEC_FETCH_MODE) != Some("navigate"),
        });
        (foreign_origin || foreign_site).then(|| {
            let words = "this comes from a page of another site";
            Problem::new(StatusCode::FORBIDDEN, ErrorCode::OriginRefused, words)
        })
    }
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Refuses what the guard refuses.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    if PROBES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let headers = request.headers();
    let mut named = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    let host = match (named.next(), named.next()) {
        // HTTP/2 says it in the address.
        (None, _) => request.uri().authority().map(|name| name.as_str()),
        (Some(host), None) => Some(host),
        // Whoever stands between us and the caller may have looked at the other one.
        (Some(_), Some(_)) => None,
    };
    match guard.refuse(request.method(), headers, host) {
        // A person who followed a link or sent a form sees a page, not JSON.
        Some(problem) if headers.get(SEC_FETCH_DEST).is_some_and(|dest| dest == "document") => {
            refusal_page(&problem)
        }
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refusal_page(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    let advice = match status {
        StatusCode::MISDIRECTED_REQUEST => {
            "This server does not answer to the name in the address bar. \
             Use the address that <code>moothall serve</code> prints."
        }
        _ => {
            "This request came from a page of another site, so nothing was done. \
             <a href=\"/\">Open Moothall</a> and try again there."
        }
    };
    plain_page(status, "Request refused", &format!("<p>{advice}</p>"))
}

/// Adds the headers of every response.
pub(crate) async fn headers(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let is_api = request.uri().path().starts_with("/api");
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(CSP));
    if guard.scheme == "https://" {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HSTS));
    }
    if is_api && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
