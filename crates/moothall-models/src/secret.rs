//! API keys, as a type that cannot be printed, compared or serialised by accident.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A secret text. It is wiped from memory when dropped.
///
/// It cannot be serialised:
/// ```compile_fail
/// let key = moothall_models::Secret::new("sk-test".to_owned());
/// serde_json::to_string(&key);
/// ```
/// It cannot be displayed:
/// ```compile_fail
/// let key = moothall_models::Secret::new("sk-test".to_owned());
/// format!("{key}");
/// ```
/// Its debug form says nothing:
/// ```
/// let key = moothall_models::Secret::new("sk-test".to_owned());
/// assert_eq!(format!("{key:?}"), "***");
/// ```
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text over; the caller should keep no copy.
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// The text itself. Only the line that puts it on the wire should call this.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// `text` without the secret, because providers echo keys. A text that was cut may end with the
    /// beginning of one, which goes too.
    pub fn remove_from(&self, text: &str) -> String {
        let secret = self.expose();
        // A very short secret would blank out ordinary words; no provider has one.
        if secret.len() < SHORTEST {
            return text.to_owned();
        }
        let mut clean = text.replace(secret, "***");
        let beginnings = (SHORTEST..secret.len()).rev().filter_map(|length| secret.get(..length));
        if let Some(rest) = beginnings.into_iter().find_map(|start| clean.strip_suffix(start)) {
            let length = rest.len();
            clean.truncate(length);
            clean.push_str("***");
        }
        clean
    }

    /// As [`Self::remove_from`] for text that comes in pieces: takes what can be shown out of
    /// `pending`, and leaves behind what may be the beginning of the secret.
    pub(crate) fn take_harmless(&self, pending: &mut String) -> String {
        let secret = self.expose();
        if secret.len() < SHORTEST {
            return std::mem::take(pending);
        }
        let mut clean = pending.replace(secret, "***");
        let beginnings = (1..secret.len()).rev().filter_map(|length| secret.get(..length));
        let held = beginnings.into_iter().find(|start| clean.ends_with(start)).map_or(0, str::len);
        *pending = clean.split_off(clean.len() - held);
        clean
    }

    /// Whether `text` holds the secret; quicker than removing it, and the usual answer is no.
    pub fn is_in(&self, text: &str) -> bool {
        self.expose().len() >= SHORTEST && text.contains(self.expose())
    }
}

const SHORTEST: usize = 4;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
