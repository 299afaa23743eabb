//! The web interface as bytes: what a server answers to a browser that asks for a path.
//!
//! The files are made by `cargo xtask web` from `web/` and compressed there once, not per request.
//! This crate knows no HTTP library, so whoever serves decides on headers; [`Asset`] says what they
//! should be.

use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Names of files below this folder hold a hash of their content.
const HASHED: &str = "/assets/";

/// One answer to a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// The body.
    pub bytes: Cow<'static, [u8]>,
    /// For `Content-Type`.
    pub content_type: &'static str,
    /// For `Content-Encoding`.
    pub encoding: Option<&'static str>,
    /// For `ETag`, with its quotes. Every encoding has its own.
    pub etag: String,
    /// Whether this path will never hold anything else, so that a browser need not ask again.
    pub immutable: bool,
}

/// A file of the interface, in up to three forms.
struct File {
    path: &'static str,
    /// From the hash of the plain form.
    tag: &'static str,
    plain: &'static [u8],
    br: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// What to answer to a path such as `/runs/7f3a`, given the browser's `Accept-Encoding`.
///
/// The interface finds its way by the address, so every path that is not a file is answered with its
/// one page; except below `/api` and `/assets`, where that would hide a mistake.
pub fn asset(path: &str, accept_encoding: &str) -> Option<Asset> {
    let is_own = |folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let file = match file(path) {
        Some(file) => file,
        None if is_own("/api") || is_own("/assets") => return None,
        None => file("/index.html")?,
    };
    let (bytes, encoding) = match (file.br, file.gzip) {
        (Some(br), _) if accepts(accept_encoding, "br") => (br, Some("br")),
        (_, Some(gzip)) if accepts(accept_encoding, "gzip") => (gzip, Some("gzip")),
        _ => (file.plain, None),
    };
    Some(Asset {
        bytes: Cow::Borrowed(bytes),
        content_type: content_type(file.path),
        encoding,
        etag: match encoding {
            Some(encoding) => format!("\"{}-{encoding}\"", file.tag),
            None => format!("\"{}\"", file.tag),
        },
        immutable: file.path.starts_with(HASHED),
    })
}

/// Whether the interface is inside, and not the page that stands in for it.
pub fn is_built() -> bool {
    FILES.iter().any(|file| file.path.starts_with(HASHED))
}

fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// Whether `Accept-Encoding` names the encoding and does not forbid it by `q=0`.
fn accepts(accept_encoding: &str, encoding: &str) -> bool {
    accept_encoding.split(',').any(|offer| {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let forbidden = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        name.trim().eq_ignore_ascii_case(encoding) && !forbidden
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("webmanifest") => "application/manifest+json",
        Some("woff2") => "font/woff2",
        // With `nosniff` a browser saves this instead of guessing.
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
