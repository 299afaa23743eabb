//! Protects a local server from requests by other sites, and sets the security headers of every
//! response.
//!
//! A foreign page can make a browser send requests to 127.0.0.1, and can point its own host name
//! there (DNS rebinding). Therefore the `Host` header must be a known name of this server, and requests
//! that change data must come from a page of this server or from no page.

use moothall_core::ErrorCode;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::ApiProblem;
use crate::plain_page::plain_page;
use crate::review_links::REVIEW_PAGE;

/// Content security policy of every page: same-origin resources only, no inline scripts or styles,
/// no framing. React sets single style properties by script, which this allows.
const CSP: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
                   form-action 'self'; frame-ancestors 'none'";

/// Content security policy of an exported memo: one file with inline styles and no scripts.
pub(crate) const EXPORT_CSP: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                                     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Tells browsers to use TLS for this host for one year. Sent only if the public URL uses TLS.
const HSTS: &str = "max-age=31536000";

/// Sent with every response.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // Not `no-referrer`: with it, browsers send `Origin: null` even from this server's own sign-in
    // form.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// The host names that a server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginGuard {
    /// In the form of the `SandboxHost` header, in lower case.
    hosts: Vec<String>,
    /// Scheme of this server's own pages.
    scheme: &'static str,
}

/// Health probes are exempt: orchestrators call them by any address, and they disclose nothing.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

impl OriginGuard {
    /// For a server that listens on this local address.
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

    /// For a server that browsers reach only at `origin`, such as `https://moothall.example.com`.
    /// Returns `None` if `origin` does not have this form.
    pub fn named(origin: &str) -> Option<Self> {
        let (scheme, host) = ["https://", "http://"]
            .into_iter()
            .find_map(|scheme| Some((scheme, origin.strip_prefix(scheme)?)))?;
        let plain =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':' | b'[' | b']');
        let is_name = !host.is_empty() && host.bytes().all(plain);
        is_name.then(|| Self { hosts: vec![host.to_ascii_lowercase()], scheme })
    }

    fn refuse(
        &self,
        method: &Method,
        headers: &HeaderMap,
        host: Option<&str>,
    ) -> Option<ApiProblem> {
        let host = host.map(str::to_ascii_lowercase);
        let Some(host) = host.filter(|host| self.hosts.contains(host)) else {
            return Some(
                ApiProblem::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    ErrorCode::HostRefused,
                    "this server does not accept the host name of the request",
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
        // Other sites may link here; any other kind of request from them is refused.
        let foreign_site = text(&SEC_FETCH_SITE).is_some_and(|site| match site {
            "same-origin" | "none" => false,
            _ => changes || text(&SEC_FETCH_MODE) != Some("navigate"),
        });
        (foreign_origin || foreign_site).then(|| {
            let message = "the request came from a page of another site";
            ApiProblem::new(StatusCode::FORBIDDEN, ErrorCode::OriginRefused, message)
        })
    }
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Middleware that rejects requests with a wrong host or a foreign origin.
pub(crate) async fn check(
    State(guard): State<Arc<OriginGuard>>,
    request: Request,
    next: Next,
) -> Response {
    if PROBES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let headers = request.headers();
    let mut named = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    let host = match (named.next(), named.next()) {
        // HTTP/2 sends the host as the URI authority.
        (None, _) => request.uri().authority().map(|name| name.as_str()),
        (Some(host), None) => Some(host),
        // Two `SandboxHost` headers are refused: a proxy in between may have checked the other one.
        (Some(_), Some(_)) => None,
    };
    match guard.refuse(request.method(), headers, host) {
        // Browser navigation gets an HTML page instead of JSON.
        Some(problem) if headers.get(SEC_FETCH_DEST).is_some_and(|dest| dest == "document") => {
            refusal_page(&problem)
        }
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refusal_page(problem: &ApiProblem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    let advice = match status {
        StatusCode::MISDIRECTED_REQUEST => {
            "This server does not accept the host name in the address bar. \
             Use the address that <code>moothall serve</code> prints."
        }
        _ => {
            "This request came from a page of another site and was refused. \
             <a href=\"/\">Open Moothall</a> and try again there."
        }
    };
    plain_page(status, "Request refused", &format!("<p>{advice}</p>"))
}

/// Middleware that adds the security headers to every response.
pub(crate) async fn headers(
    State(guard): State<Arc<OriginGuard>>,
    request: Request,
    next: Next,
) -> Response {
    let is_api = request.uri().path().starts_with("/api");
    let is_review_page = request.uri().path() == REVIEW_PAGE;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_review_page {
        // The page has no form, so its requests keep their origin.
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
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
