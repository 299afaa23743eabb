//! Connection settings of a provider: headers, query, proxy, certificates, and keys that change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use moothall_core::model::{FailureKind, ModelFailure, ModelReply, ModelRequest};
use moothall_models::settings::{ProviderSettings, RetrySettings};
use moothall_models::{
    ApiKey, Catalog, Gateway, GatewayOptions, KeyFuture, KeyResolver, KeySupply, KeyTestResult,
    ProviderConnections, ProviderSecrets, RecordingMode, RunLedger, test_key,
};
use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::{Heard, KEY};

fn pair(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

fn at(base_url: String) -> ProviderSettings {
    ProviderSettings { base_url: Some(base_url), ..ProviderSettings::default() }
}

fn of_server(server: &FakeProvider) -> ProviderSettings {
    at(server.base_url(ProviderProtocol::OpenAi))
}

fn gateway(provider: &str, settings: ProviderSettings, secrets: ProviderSecrets) -> Gateway {
    let mut catalog = Catalog::built_in().unwrap();
    catalog.configure(&BTreeMap::from([(provider.to_owned(), settings)])).unwrap();
    let keys = BTreeMap::from([(provider.to_owned(), secrets)]);
    let retry = RetrySettings { retries: 0, ..RetrySettings::default() };
    let (recording, connections) = (RecordingMode::Off, ProviderConnections::default());
    Gateway::new(GatewayOptions { catalog, keys, retry, recording, connections })
}

async fn ask(gateway: &Gateway, model: &str) -> Result<ModelReply, ModelFailure> {
    let request = ModelRequest::ask(model.parse().unwrap(), "Say hello.", 50);
    gateway.call(&request, &RunLedger::unlimited(), None).await.result
}

fn secrets() -> ProviderSecrets {
    ApiKey::new(KEY.to_owned()).into()
}

#[tokio::test]
async fn extra_headers_and_query_parameters_are_sent() {
    let server = FakeProvider::start().await.unwrap();
    let settings = ProviderSettings {
        headers: pair("x-team", "research"),
        query: pair("api-version", "2026-10-01 preview"),
        ..of_server(&server)
    };
    ask(&gateway("lab", settings, secrets()), "lab/m").await.unwrap();
    let calls = server.calls();
    assert_eq!(calls[0].path(), "/v1/chat/completions?api-version=2026-10-01+preview");
    assert_eq!(calls[0].header("x-team"), Some("research"));
    assert_eq!(calls[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
}

#[tokio::test]
async fn secret_headers_are_sent_and_removed_from_replies() {
    const TOKEN: &str = "token-of-the-gateway";
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text(format!("your token is {TOKEN}, your key {KEY}")));
    let headers =
        BTreeMap::from([("x-gateway-token".to_owned(), ApiKey::new(TOKEN.to_owned()).into())]);
    let secrets = ProviderSecrets { headers, ..secrets() };
    let gateway = gateway("lab", of_server(&server), secrets);
    let request = ModelRequest::ask("lab/m".parse().unwrap(), "Say hello.", 50);
    let mut heard = Heard::default();
    let report = gateway.call(&request, &RunLedger::unlimited(), Some(&mut heard)).await;
    assert_eq!(report.result.unwrap().text, "your token is ***, your key ***");
    assert_eq!(heard.text, "your token is ***, your key ***");
    assert_eq!(server.calls()[0].header("x-gateway-token"), Some(TOKEN));
    assert!(!format!("{gateway:?}").contains(TOKEN));
}

/// Prints `token-0`, `token-1` and so on, as a command for access tokens does.
#[derive(Debug, Clone, Default)]
struct TokenPrinter(Arc<AtomicUsize>);

impl KeyResolver for TokenPrinter {
    fn resolve(&self) -> KeyFuture<'_> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(ApiKey::new(format!("token-{number}"))) })
    }
}

#[tokio::test]
async fn an_expired_access_token_is_replaced_within_one_attempt() {
    let server = FakeProvider::start().await.unwrap();
    server.script([ProviderBehaviour::from(ProviderFault::Unauthorized)]);
    let tokens = TokenPrinter::default();
    let key = Some(KeySupply::fetched_by(tokens.clone()));
    let gateway = gateway("lab", of_server(&server), ProviderSecrets { key, ..Default::default() });
    let request = ModelRequest::ask("lab/m".parse().unwrap(), "Say hello.", 50);
    let ledger = RunLedger::unlimited();
    let report = gateway.call(&request, &ledger, None).await;
    assert!(report.result.is_ok(), "{report:?}");
    assert_eq!(report.timing.tries, 1);
    ask(&gateway, "lab/m").await.unwrap();
    let sent: Vec<_> = server
        .calls()
        .iter()
        .map(|call| call.header("authorization").unwrap_or_default().to_owned())
        .collect();
    assert_eq!(sent, ["Bearer token-0", "Bearer token-1", "Bearer token-1"]);
    assert_eq!(tokens.0.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_rejected_key_without_a_replacement_is_sent_once() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderFault::Unauthorized);
    let failure = ask(&gateway("lab", of_server(&server), secrets()), "lab/m").await.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::Auth, Some(401)));
    assert_eq!(server.stats().received, 1);
}

#[tokio::test]
async fn aws_credentials_sign_the_request_and_are_not_sent() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text("the secret is wJalrXUtnFEMI-K7MDENG"));
    let secrets =
        ApiKey::new("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI-K7MDENG:the-session-token".to_owned());
    let base_url = format!("http://{}/openai/v1", server.address());
    let settings = ProviderSettings { region: Some("eu-west-1".to_owned()), ..at(base_url) };
    let gateway = gateway("bedrock", settings, secrets.into());
    let reply = ask(&gateway, "bedrock/openai.gpt-oss-20b-1:0").await.unwrap();
    assert_eq!(reply.text, "the secret is ***");
    let calls = server.calls();
    let authorization = calls[0].header("authorization").unwrap();
    let date = calls[0].header("x-amz-date").unwrap();
    let scope = format!("{}/eu-west-1/bedrock/aws4_request", &date[..8]);
    let start = format!(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/{scope}, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="
    );
    assert_eq!(authorization.strip_prefix(&*start).map(str::len), Some(64), "{authorization}");
    assert_eq!(calls[0].header("x-amz-security-token"), Some("the-session-token"));
    let has_secret = |(_, value): &(&str, &str)| value.contains("wJalrXUtnFEMI");
    assert!(!calls[0].headers().iter().any(has_secret));
}

#[tokio::test]
async fn a_proxy_receives_the_requests_of_its_provider() {
    // A proxy gets the whole address of the target, where nothing listens.
    let proxy = FakeProvider::start().await.unwrap();
    let settings = ProviderSettings {
        proxy: Some(format!("http://{}", proxy.address())),
        ..at("http://127.0.0.1:9/v1".to_owned())
    };
    ask(&gateway("lab", settings, secrets()), "lab/m").await.unwrap();
    assert_eq!(proxy.calls()[0].path(), "http://127.0.0.1:9/v1/chat/completions");
}

#[tokio::test]
async fn a_key_is_not_sent_in_plain_text_through_a_proxy_on_another_machine() {
    let settings = ProviderSettings {
        proxy: Some("http://proxy.example:3128".to_owned()),
        ..at("http://127.0.0.1:9/v1".to_owned())
    };
    let failure = ask(&gateway("lab", settings, secrets()), "lab/m").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(failure.detail.contains("never sent over plain http"), "{failure}");
}

fn ca_file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/it/tls/ca.pem"].iter().collect()
}

/// Reads one request and sends one response.
async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    response: &str,
) -> std::io::Result<String> {
    let mut request = Vec::new();
    // With its body: a connection that is closed before is reset.
    while !is_complete(&String::from_utf8_lossy(&request)) {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(String::from_utf8_lossy(&request).into_owned())
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

fn response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A server with a certificate of the test CA.
async fn tls_server() -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = include_bytes!("tls/server.pem");
    let certificates = vec![CertificateDer::from_pem_slice(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let body = r#"{"model":"m","choices":[{"message":{"content":"over TLS"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = answer(stream, &response("200 OK", body)).await;
            }
        }
    });
    url
}

#[tokio::test]
async fn a_server_with_a_private_certificate_needs_its_ca_file() {
    let url = tls_server().await;
    let failure = ask(&gateway("lab", at(url.clone()), secrets()), "lab/m").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transport, "{failure}");
    let settings = ProviderSettings { ca_file: Some(ca_file()), ..at(url) };
    let reply = ask(&gateway("lab", settings, secrets()), "lab/m").await.unwrap();
    assert_eq!(reply.text, "over TLS");
}

#[tokio::test]
async fn an_unusable_ca_file_is_reported_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    fs_err::write(&empty, "not a certificate\n").unwrap();
    for (path, cause) in [
        (folder.path().join("missing.pem"), "entity not found"),
        (empty, "it contains no certificate in PEM format"),
    ] {
        let expected = format!("cannot use `ca_file` {}: {cause}", path.display());
        let settings =
            ProviderSettings { ca_file: Some(path), ..at("https://127.0.0.1:9/v1".to_owned()) };
        let failure = ask(&gateway("lab", settings, secrets()), "lab/m").await.unwrap_err();
        assert_eq!((failure.kind, failure.detail), (FailureKind::BadRequest, expected));
    }
}

/// Tests a key at a server that answers once, and returns the request too.
async fn key_test(
    provider: &str,
    status: &str,
    body: &str,
) -> (Result<KeyTestResult, ModelFailure>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let response = response(status, body);
    let request = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, &response).await.unwrap()
    });
    let mut catalog = Catalog::built_in().unwrap();
    catalog.configure(&BTreeMap::from([(provider.to_owned(), at(url))])).unwrap();
    let provider = catalog.provider(provider).unwrap();
    let result = test_key(provider, secrets(), &ProviderConnections::default()).await;
    (result, request.await.unwrap())
}

#[tokio::test]
async fn a_key_is_tested_with_the_list_of_models() {
    let list = r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#;
    for (provider, line, header) in [
        ("openai", "GET /v1/models HTTP/1.1", format!("authorization: Bearer {KEY}")),
        ("anthropic", "GET /v1/models HTTP/1.1", format!("x-api-key: {KEY}")),
        ("azure", "GET /v1/models HTTP/1.1", format!("api-key: {KEY}")),
        ("openrouter", "GET /v1/key HTTP/1.1", format!("authorization: Bearer {KEY}")),
    ] {
        let (result, request) = key_test(provider, "200 OK", list).await;
        assert_eq!(result, Ok(KeyTestResult::Accepted { models: Some(2) }), "{provider}");
        assert!(request.starts_with(line) && request.contains(&header), "{request}");
    }
}

#[tokio::test]
async fn a_rejected_key_is_not_quoted_by_its_test() {
    let body = format!("{{\"error\":{{\"message\":\"wrong key: {KEY}\"}}}}");
    let failure = key_test("openai", "401 Unauthorized", &body).await.0.unwrap_err();
    assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::Auth, "wrong key: ***"));
}

#[tokio::test]
async fn a_provider_without_a_list_of_models_needs_another_test() {
    let result = key_test("lab", "404 Not Found", "{}").await.0;
    assert_eq!(result, Ok(KeyTestResult::NotSupported));
    let catalog = Catalog::built_in().unwrap();
    let bedrock = catalog.provider("bedrock").unwrap();
    let result = test_key(bedrock, secrets(), &ProviderConnections::default()).await;
    assert_eq!(result, Ok(KeyTestResult::NotSupported));
}
