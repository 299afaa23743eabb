//! HTML pages without scripts, for sign-in and refusals; they do not depend on the web UI.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};

/// `title` and `body` are inserted as HTML without escaping: never pass data from a request.
pub(crate) fn plain_page(status: StatusCode, title: &'static str, body: &str) -> Response {
    let page = include_str!("plain_page.html").replace("{title}", title).replace("{body}", body);
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, no_store, Html(page)).into_response()
}
