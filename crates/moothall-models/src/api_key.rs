//! API keys, in a type that cannot be printed, compared or serialized by accident.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A secret text. Erased from memory when dropped.
///
/// It cannot be serialized:
/// ```compile_fail
/// let key = moothall_models::ApiKey::new("sk-test".to_owned());
/// serde_json::to_string(&key);
/// ```
/// It cannot be displayed:
/// ```compile_fail
/// let key = moothall_models::ApiKey::new("sk-test".to_owned());
/// format!("{key}");
/// ```
/// Its debug output is masked:
/// ```
/// let key = moothall_models::ApiKey::new("sk-test".to_owned());
/// assert_eq!(format!("{key:?}"), "***");
/// ```
#[derive(Clone)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// Takes ownership of the text; the caller should keep no copy.
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// The plain text. Call this only where the key is sent.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Removes the secret from `text`, because providers echo keys. Also removes a prefix of the
    /// secret at the end, where the text may have been cut.
    pub fn remove_from(&self, text: &str) -> String {
        let secret = self.expose();
        // A very short secret would mask ordinary words; no provider issues one.
        if secret.len() < MIN_KEY_BYTES {
            return text.to_owned();
        }
        let mut clean = text.replace(secret, "***");
        let beginnings =
            (MIN_KEY_BYTES..secret.len()).rev().filter_map(|length| secret.get(..length));
        if let Some(rest) = beginnings.into_iter().find_map(|start| clean.strip_suffix(start)) {
            let length = rest.len();
            clean.truncate(length);
            clean.push_str("***");
        }
        clean
    }

    /// Like [`Self::remove_from`], for streamed text: takes the safe part out of `pending` and
    /// leaves what may be the start of the secret.
    pub(crate) fn take_harmless(&self, pending: &mut String) -> String {
        let secret = self.expose();
        if secret.len() < MIN_KEY_BYTES {
            return std::mem::take(pending);
        }
        let mut clean = pending.replace(secret, "***");
        let beginnings = (1..secret.len()).rev().filter_map(|length| secret.get(..length));
        let held = beginnings.into_iter().find(|start| clean.ends_with(start)).map_or(0, str::len);
        *pending = clean.split_off(clean.len() - held);
        clean
    }

    /// Whether `text` contains the secret. Faster than removing it, and usually false.
    pub fn is_in(&self, text: &str) -> bool {
        self.expose().len() >= MIN_KEY_BYTES && text.contains(self.expose())
    }
}

const MIN_KEY_BYTES: usize = 4;

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
#[path = "api_key_tests.rs"]
mod tests;
