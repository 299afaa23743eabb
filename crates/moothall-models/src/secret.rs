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

    /// `text` with every occurrence of the secret replaced, because providers echo keys in their errors.
    pub fn remove_from(&self, text: &str) -> String {
        // A very short secret would blank out ordinary words; no provider has one.
        if self.expose().len() < 4 { text.to_owned() } else { text.replace(self.expose(), "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
