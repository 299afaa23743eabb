//! Fetches one news response over HTTP.

use std::time::Duration;

use moothall_core::evidence::news::MAX_NEWS_BYTES;
use moothall_models::build_http_client;
use moothall_models::connection::is_loopback;
use reqwest::header::USER_AGENT;
use reqwest::{Client, Response, Url, redirect};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the whole exchange.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 3;
const PROGRAM: &str = concat!("moothall/", env!("CARGO_PKG_VERSION"));

/// Fetches a URL once. Only `https` is allowed, except for loopback addresses.
pub(crate) async fn fetch(address: &str) -> Result<Vec<u8>, String> {
    let url = Url::parse(address).map_err(|error| format!("invalid URL: {error}"))?;
    let here = is_loopback(&url);
    match url.scheme() {
        "https" => {}
        "http" if here => {}
        _ => return Err("only https URLs are supported".to_owned()),
    }
    let client = build(here).map_err(|error| format!("cannot create an HTTP client: {error}"))?;
    let exchange = async {
        let sent = client.get(url).header(USER_AGENT, PROGRAM).send().await;
        let response = sent.map_err(|error| request_error(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("the server returned status {}", status.as_u16()));
        }
        read(response).await
    };
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(done) => done,
        Err(_) => Err(format!("no complete response within {} seconds", TIMEOUT.as_secs())),
    }
}

fn build(here: bool) -> Result<Client, reqwest::Error> {
    build_http_client(|builder| {
        let builder = builder.connect_timeout(CONNECT_TIMEOUT);
        match here {
            // A loopback server must not redirect elsewhere and needs no proxy.
            true => builder.no_proxy().redirect(redirect::Policy::none()),
            false => builder.https_only(true).redirect(redirect::Policy::limited(MAX_REDIRECTS)),
        }
    })
}

/// Does not preallocate from `Content-Length`, which is untrusted.
async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| request_error(&error))? {
        if body.len() + piece.len() > MAX_NEWS_BYTES {
            return Err(format!("response is larger than {MAX_NEWS_BYTES} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Describes an error without the URL, which may contain a secret key.
fn request_error(error: &reqwest::Error) -> String {
    if error.is_connect() {
        "cannot reach the server".to_owned()
    } else if error.is_redirect() {
        "the server redirected the request".to_owned()
    } else {
        "the connection broke".to_owned()
    }
}
