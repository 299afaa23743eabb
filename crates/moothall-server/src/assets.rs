//! Serves the web UI.

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};

use crate::ApiProblem;

/// Style sheets of pages outside the web UI. They are separate files because the content security
/// policy forbids inline styles.
const STYLES: [(&str, &str); 2] = [
    ("/plain-page.css", include_str!("plain_page.css")),
    ("/api-docs.css", include_str!("openapi/page.css")),
];

/// Handles every path outside the API: serves a file of the web UI or its page.
pub(crate) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !matches!(method, Method::GET | Method::HEAD) {
        return not_found();
    }
    if let Some((_, style)) = STYLES.iter().find(|(path, _)| *path == uri.path()) {
        let cache = (header::CACHE_CONTROL, "no-cache");
        return ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), cache], *style)
            .into_response();
    }
    let Some(asset) = moothall_ui::asset(uri.path(), text(header::ACCEPT_ENCODING)) else {
        return not_found();
    };
    let cache = match asset.immutable {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut response = if text(header::IF_NONE_MATCH) == asset.etag {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = Body::from(asset.bytes.into_owned());
        ([(header::CONTENT_TYPE, asset.content_type)], body).into_response()
    };
    let headers = response.headers_mut();
    let mut set_header = |name, value: &str| {
        if let Ok(value) = value.parse() {
            headers.insert(name, value);
        }
    };
    set_header(header::CACHE_CONTROL, cache);
    set_header(header::ETAG, &asset.etag);
    set_header(header::VARY, "accept-encoding");
    if let Some(encoding) = asset.encoding {
        set_header(header::CONTENT_ENCODING, encoding);
    }
    response
}

fn not_found() -> Response {
    ApiProblem::not_found("page not found").into_response()
}
