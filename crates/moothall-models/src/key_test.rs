//! Lists the models of a provider: the cheapest request that needs a key, and the way to learn what a
//! user's own server offers.

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

/// Where vLLM, llama.cpp, LM Studio and OpenRouter state the window of a model.
const MODEL_WINDOWS: [&str; 4] =
    ["/max_model_len", "/meta/n_ctx", "/loaded_context_length", "/context_length"];
/// Where llama.cpp states the window that it was started with.
const SERVED_WINDOW: &str = "/default_generation_settings/n_ctx";

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTestResult {
    /// The provider accepted the key; with the number of models, if it listed them.
    Accepted { models: Option<usize> },
    /// The provider has no request for this purpose.
    NotSupported,
}

/// A model that a server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    pub name: String,
    /// The context window in tokens, if the server states it.
    pub context: Option<u64>,
}

/// Sends a request that costs nothing.
pub async fn test_key(
    provider: &ModelProvider,
    secrets: ProviderSecrets,
    connections: &ProviderConnections,
) -> Result<KeyTestResult, ModelFailure> {
    let body = get(provider, provider.key_test_path.as_deref(), secrets, connections).await?;
    Ok(body.map_or(KeyTestResult::NotSupported, |body| KeyTestResult::Accepted {
        models: served_models(&body).map(|models| models.len()),
    }))
}

/// The models of a user's own server. Empty if the server does not list them.
pub async fn list_models(
    base_url: &str,
    connections: &ProviderConnections,
) -> Result<Vec<ServedModel>, ModelFailure> {
    let provider = ModelProvider::compatible("local", base_url);
    list_provider_models(&provider, ProviderSecrets::default(), connections).await
}

/// The models of a provider. Empty if the provider does not list them.
pub async fn list_provider_models(
    provider: &ModelProvider,
    secrets: ProviderSecrets,
    connections: &ProviderConnections,
) -> Result<Vec<ServedModel>, ModelFailure> {
    let path = provider.key_test_path.as_deref();
    let body = get(provider, path, secrets.clone(), connections).await?;
    let mut models = body.as_ref().and_then(served_models).unwrap_or_default();
    // llama.cpp serves one model and states its window elsewhere.
    if let [ServedModel { context: context @ None, .. }] = models.as_mut_slice()
        && let Some(root) = provider.base_url.trim_end_matches('/').strip_suffix("/v1")
    {
        let mut provider = provider.clone();
        provider.base_url = root.to_owned();
        let body = get(&provider, Some("/props"), secrets, connections).await.unwrap_or_default();
        *context = body.and_then(|body| body.pointer(SERVED_WINDOW)?.as_u64());
    }
    Ok(models)
}

/// The JSON body of a resource; `None` if the server does not have it.
async fn get(
    provider: &ModelProvider,
    path: Option<&str>,
    secrets: ProviderSecrets,
    connections: &ProviderConnections,
) -> Result<Option<Value>, ModelFailure> {
    let Some(path) = path else { return Ok(None) };
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
) -> Result<Option<Value>, ModelFailure> {
    let response = request.send().await;
    let response =
        response.map_err(|error| ModelFailure::new(FailureKind::Transport, causes(&error)))?;
    let status = response.status().as_u16();
    if matches!(status, 404 | 405) {
        return Ok(None);
    }
    let body = read_body(response, MAX_LIST_BYTES).await?;
    if !(200..300).contains(&status) {
        // Decoding a response with such a status always fails.
        wire::decode(provider.wire, status, None, &body)?;
    }
    Ok(Some(serde_json::from_slice(&body).unwrap_or_default()))
}

/// OpenAI and Anthropic list models in `data`, Ollama in `models`.
fn served_models(list: &Value) -> Option<Vec<ServedModel>> {
    let list = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let model = |one: &Value| ServedModel {
        name: ["id", "name"]
            .iter()
            .find_map(|key| one.get(key)?.as_str())
            .unwrap_or_default()
            .into(),
        context: MODEL_WINDOWS.iter().find_map(|key| one.pointer(key)?.as_u64()),
    };
    Some(list.iter().map(model).collect())
}

#[cfg(test)]
#[path = "key_test_tests.rs"]
mod tests;
