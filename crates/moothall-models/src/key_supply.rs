//! API keys that are known from the start, or fetched when a call first needs them.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use moothall_core::model::ModelFailure;
use tokio::sync::Mutex;

use crate::api_key::ApiKey;

pub type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<ApiKey, ModelFailure>> + Send + 'a>>;

/// Fetches a key from outside the process, such as a keychain or a command.
pub trait KeyResolver: fmt::Debug + Send + Sync {
    /// Fetches the key again, whatever was fetched before.
    fn resolve(&self) -> KeyFuture<'_>;
}

/// An API key, or the way to fetch it. Clones share the fetched key.
#[derive(Debug, Clone)]
pub struct KeySupply(SupplyKind);

#[derive(Debug, Clone)]
enum SupplyKind {
    Fixed(ApiKey),
    Fetched(Arc<FetchedKey>),
}

#[derive(Debug)]
struct FetchedKey {
    resolver: Box<dyn KeyResolver>,
    /// Locked while the key is fetched, so that concurrent calls fetch it once.
    key: Mutex<Option<ApiKey>>,
}

impl KeySupply {
    pub fn fixed(key: ApiKey) -> Self {
        Self(SupplyKind::Fixed(key))
    }

    pub fn fetched_by(resolver: impl KeyResolver + 'static) -> Self {
        let key = FetchedKey { resolver: Box::new(resolver), key: Mutex::new(None) };
        Self(SupplyKind::Fetched(Arc::new(key)))
    }

    /// The key, fetched by the first call.
    pub async fn get(&self) -> Result<ApiKey, ModelFailure> {
        match &self.0 {
            SupplyKind::Fixed(key) => Ok(key.clone()),
            SupplyKind::Fetched(fetched) => {
                let mut key = fetched.key.lock().await;
                if let Some(key) = &*key {
                    return Ok(key.clone());
                }
                let fresh = fetched.resolver.resolve().await?;
                *key = Some(fresh.clone());
                Ok(fresh)
            }
        }
    }

    /// Another key after the provider rejected one, for access tokens that expire. `None`
    /// if no other one exists.
    pub async fn replacement_of(&self, rejected: &ApiKey) -> Option<ApiKey> {
        let SupplyKind::Fetched(fetched) = &self.0 else { return None };
        let mut key = fetched.key.lock().await;
        let is_other = |key: &ApiKey| key.expose() != rejected.expose();
        // Another call may have fetched it in the meantime.
        if let Some(key) = key.as_ref().filter(|key| is_other(key)) {
            return Some(key.clone());
        }
        let fresh = fetched.resolver.resolve().await.ok().filter(is_other)?;
        *key = Some(fresh.clone());
        Some(fresh)
    }
}

impl From<ApiKey> for KeySupply {
    fn from(key: ApiKey) -> Self {
        Self::fixed(key)
    }
}

/// The secrets of one provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderSecrets {
    pub key: Option<KeySupply>,
    /// Secret headers by name.
    pub headers: BTreeMap<String, KeySupply>,
}

impl From<ApiKey> for ProviderSecrets {
    fn from(key: ApiKey) -> Self {
        Self { key: Some(key.into()), headers: BTreeMap::new() }
    }
}

/// The secrets that one request contains, to remove them from everything that comes back.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentSecrets(Vec<ApiKey>);

impl SentSecrets {
    pub(crate) fn new(secrets: impl IntoIterator<Item = ApiKey>) -> Self {
        Self(secrets.into_iter().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the secrets from `text`, and a prefix of one at the end, where the text may have been
    /// cut.
    pub(crate) fn remove_from(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| secret.remove_from(&text))
    }

    /// Whether `text` contains a secret. Faster than removing it, and usually false.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| secret.is_in(text))
    }

    /// Like [`Self::remove_from`], for streamed text: takes the safe part out of `pending` and
    /// leaves what may be the start of a secret.
    pub(crate) fn take_harmless(&self, pending: &mut String) -> String {
        let mut clean = std::mem::take(pending);
        for secret in &self.0 {
            if secret.is_in(&clean) {
                clean = secret.replace_in(&clean);
            }
        }
        let held = self.0.iter().map(|secret| secret.start_at_end_of(&clean)).max().unwrap_or(0);
        *pending = clean.split_off(clean.len() - held);
        clean
    }
}

#[cfg(test)]
#[path = "key_supply_tests.rs"]
mod tests;
