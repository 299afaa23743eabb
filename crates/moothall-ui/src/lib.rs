//! The web UI as embedded files.
//!
//! `cargo xtask web` builds the files from `web/` and compresses them once, so there is no
//! compression per request. This crate does not depend on an HTTP library; [`Asset`] tells the
//! server which headers to send.

use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// File names in this folder contain a hash of the content.
const HASHED: &str = "/assets/";

/// A response for a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// The body.
    pub bytes: Cow<'static, [u8]>,
    /// Value of `Content-Type`.
    pub content_type: &'static str,
    /// Value of `Content-Encoding`.
    pub encoding: Option<&'static str>,
    /// Value of `ETag` with quotes. Each encoding has its own.
    pub etag: String,
    /// Whether the content of this path never changes, so that browsers can cache it forever.
    pub immutable: bool,
}

/// An embedded file, with up to two precompressed copies.
struct EmbeddedFile {
    path: &'static str,
    /// Derived from the hash of the uncompressed content.
    tag: &'static str,
    plain: &'static [u8],
    br: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// Returns the response for a path such as `/runs/7f3a`, given the browser's `Accept-Encoding`.
///
/// The web UI does its own routing, so every path that is not a file gets its single page, except
/// below `/api` and `/assets`, where that would hide errors.
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

/// Reports whether the web UI is embedded, rather than the placeholder page.
pub fn is_built() -> bool {
    FILES.iter().any(|file| file.path.starts_with(HASHED))
}

fn file(path: &str) -> Option<&'static EmbeddedFile> {
    FILES.iter().find(|file| file.path == path)
}

/// Reports whether `Accept-Encoding` lists the encoding without `q=0`.
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
        // With `nosniff`, browsers download this instead of guessing the type.
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
