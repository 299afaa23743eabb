//! One answer with news in it, over HTTP.

use std::time::Duration;

use moothall_core::evidence::news::MAX_NEWS_BYTES;
use moothall_models::connection::is_loopback;
use reqwest::header::USER_AGENT;
use reqwest::{Client, Response, Url, redirect};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The whole exchange.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Feeds move; those that move more often are lost.
const MAX_REDIRECTS: usize = 3;
const PROGRAM: &str = concat!("moothall/", env!("CARGO_PKG_VERSION"));

/// Fetches an address once. Only `https`, and whatever is on this machine.
pub(super) async fn fetch(address: &str) -> Result<Vec<u8>, String> {
    let url = Url::parse(address).map_err(|error| format!("bad address: {error}"))?;
    let here = is_loopback(&url);
    match url.scheme() {
        "https" => {}
        "http" if here => {}
        _ => return Err("only https addresses are asked".to_owned()),
    }
    let client = build(here).map_err(|error| format!("no HTTP client: {error}"))?;
    let exchange = async {
        let sent = client.get(url).header(USER_AGENT, PROGRAM).send().await;
        let response = sent.map_err(|error| lost(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("the server answered with status {}", status.as_u16()));
        }
        read(response).await
    };
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(done) => done,
        Err(_) => Err(format!("no complete answer within {} seconds", TIMEOUT.as_secs())),
    }
}

fn build(here: bool) -> Result<Client, reqwest::Error> {
    // The first caller in the process decides; any provider will do, so a refusal is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().connect_timeout(CONNECT_TIMEOUT);
    match here {
        // A server on this machine has no business to send us elsewhere, nor has a proxy with it.
        true => builder.no_proxy().redirect(redirect::Policy::none()),
        false => builder.https_only(true).redirect(redirect::Policy::limited(MAX_REDIRECTS)),
    }
    .build()
}

/// No length that the server tells is allocated.
async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
        if body.len() + piece.len() > MAX_NEWS_BYTES {
            return Err(format!("the answer is longer than {MAX_NEWS_BYTES} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// What went wrong, without the address, which may hold a key.
fn lost(error: &reqwest::Error) -> String {
    if error.is_connect() {
        "the server cannot be reached".to_owned()
    } else if error.is_redirect() {
        "the server sends us elsewhere".to_owned()
    } else {
        "the connection broke".to_owned()
    }
}
