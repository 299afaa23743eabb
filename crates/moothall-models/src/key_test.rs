//! Tests an API key with the cheapest request that needs one.

use std::time::Duration;

use moothall_core::model::{FailureKind, ModelFailure};
use reqwest::RequestBuilder;
use serde_json::Value;

use crate::catalog::ModelProvider;
use crate::connection::causes;
use crate::http::read_body;
use crate::key_supply::ProviderSecrets;
use crate::provider_connections::ProviderConnections;
use crate::request_target::RequestTarget;
use crate::wire;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Lists of models are long: OpenRouter sends half a megabyte.
const MAX_LIST_BYTES: usize = 8 << 20;

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTestResult {
    /// The provider accepted the key; with the number of models, if it listed them.
    Accepted { models: Option<usize> },
    /// The provider has no request for this purpose.
    NotSupported,
}

/// Sends a request that costs nothing.
pub async fn test_key(
    provider: &ModelProvider,
    secrets: ProviderSecrets,
    connections: &ProviderConnections,
) -> Result<KeyTestResult, ModelFailure> {
    let Some(path) = &provider.key_test_path else { return Ok(KeyTestResult::NotSupported) };
    let target = RequestTarget::new(provider, path, secrets)?;
    let client = connections.clients().for_provider(&provider.connection, &target.url)?;
    let headers = target.headers("GET", b"").await?;
    let request = client.get(target.url.clone()).headers(headers.headers).timeout(TIMEOUT);
    read_result(provider, request).await.map_err(|mut failure| {
        failure.detail = headers.secrets.remove_from(&failure.detail);
        failure
    })
}

async fn read_result(
    provider: &ModelProvider,
    request: RequestBuilder,
) -> Result<KeyTestResult, ModelFailure> {
    let response = request.send().await;
    let response =
        response.map_err(|error| ModelFailure::new(FailureKind::Transport, causes(&error)))?;
    let status = response.status().as_u16();
    if matches!(status, 404 | 405) {
        return Ok(KeyTestResult::NotSupported);
    }
    let body = read_body(response, MAX_LIST_BYTES).await?;
    if !(200..300).contains(&status) {
        // Decoding a response with such a status always fails.
        wire::decode(provider.wire, status, None, &body)?;
    }
    Ok(KeyTestResult::Accepted { models: count_models(&body) })
}

/// OpenAI and Anthropic list models in `data`, Ollama in `models`.
fn count_models(body: &[u8]) -> Option<usize> {
    let list: Value = serde_json::from_slice(body).ok()?;
    list.get("data").or_else(|| list.get("models"))?.as_array().map(Vec::len)
}
