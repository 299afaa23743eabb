//! The contact address that the SEC requires in every request.

use std::fmt;

/// A contact with an email address, safe to use as a header value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecContact(String);

/// The text contains no email address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an email address such as ada@example.com")]
pub struct InvalidContact;

const MAX_CONTACT_CHARS: usize = 200;

impl SecContact {
    /// Parses an email address, with or without a name.
    pub fn parse(text: &str) -> Result<Self, InvalidContact> {
        let text = text.trim();
        let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let is_address = |word: &str| {
            let word = word.trim_matches(['<', '>', '(', ')']);
            word.split_once('@').is_some_and(|(name, host)| {
                !name.is_empty()
                    && host.contains('.')
                    && !host.starts_with('.')
                    && !host.ends_with('.')
                    && !host.contains('@')
            })
        };
        let is_valid =
            text.len() <= MAX_CONTACT_CHARS && printable && text.split(' ').any(is_address);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidContact) }
    }
}

impl fmt::Display for SecContact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "contact_tests.rs"]
mod tests;
