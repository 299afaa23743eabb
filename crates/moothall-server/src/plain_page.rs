//! Pages without scripts, for signing in and for refusals: they work when the web UI cannot.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};

/// Both texts are HTML of this crate. Nothing from a request may be part of them.
pub(crate) fn plain_page(status: StatusCode, title: &'static str, body: &str) -> Response {
    let page = include_str!("plain_page.html").replace("{title}", title).replace("{body}", body);
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, no_store, Html(page)).into_response()
}
