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

    /// Replaces every whole occurrence.
    pub(crate) fn replace_in(&self, text: &str) -> String {
        text.replace(self.expose(), "***")
    }

    /// The length of the longest start of the secret that `text` ends with.
    pub(crate) fn start_at_end_of(&self, text: &str) -> usize {
        let secret = self.expose();
        if secret.len() < MIN_KEY_BYTES {
            return 0;
        }
        let beginnings = (1..secret.len()).rev().filter_map(|length| secret.get(..length));
        beginnings.into_iter().find(|start| text.ends_with(start)).map_or(0, str::len)
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
