//! Credentials in text: formats that vendors document, and values that merely look like one.
//!
//! Comments that ask scanners to look away are not obeyed: the author is the suspect. What the file
//! held before is not new. No value leaves this module: findings carry a keyed hash.

mod table;
mod views;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use sha2::{Digest, Sha256};

use self::table::{Pattern, TABLE};
use self::views::{View, views};
use super::rule::Rule;
use super::{FileChange, Seen};
use crate::Sha256Hex;

/// Findings of one file beyond which nobody counts.
const MAX_FOUND: usize = 50;

/// A key that makes hashes of values useless to whoever does not hold it.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

impl FingerprintKey {
    /// A key of random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// HMAC-SHA-256 (RFC 2104), the first 64 bits in hexadecimal.
    fn fingerprint(&self, value: &[u8]) -> String {
        let pad = |with: u8| {
            let mut block = [with; 64];
            for (byte, key) in block.iter_mut().zip(self.0) {
                *byte ^= key;
            }
            block
        };
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(value).finalize();
        let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
        outer.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FingerprintKey(***)")
    }
}

/// How sure a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The format of one vendor.
    Specific,
    /// Looks like one.
    Generic,
}

/// A credential, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// What it is, such as `github-token`.
    pub kind: &'static str,
    /// How sure.
    pub tier: Tier,
    /// The line, from 1.
    pub line: usize,
    /// The hash of the value, for exceptions.
    pub sha256: Sha256Hex,
    /// The keyed hash, for people and journals.
    pub fingerprint: String,
}

/// Finds credentials in bytes of any encoding, in the order of lines.
pub fn scan(bytes: &[u8], key: &FingerprintKey) -> Vec<Secret> {
    scan_beyond(BTreeSet::new(), bytes, key)
}

/// The same, without those whose hashes are known: they do not count towards the most, or a file
/// with many would hide one more.
fn scan_beyond(mut known: BTreeSet<Sha256Hex>, bytes: &[u8], key: &FingerprintKey) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    for view in views(bytes, &PREFIXES) {
        scan_view(&view, &mut |pattern: &Pattern, at: usize, value: &[u8]| {
            let sha256 = Sha256Hex::of(value);
            if found.len() < MAX_FOUND && known.insert(sha256) {
                found.push(Secret {
                    kind: pattern.kind,
                    tier: pattern.tier,
                    line: line_of(bytes, view.original(at)),
                    sha256,
                    fingerprint: key.fingerprint(value),
                });
            }
        });
    }
    found.sort_by_key(|secret| secret.line);
    found
}

/// What a draft has that its file had not.
pub(super) fn look(change: &FileChange<'_>, key: &FingerprintKey) -> Vec<Seen> {
    let Some(draft) = change.draft else { return Vec::new() };
    let before: BTreeSet<Sha256Hex> = match change.base {
        Some(base) if base.bytes == draft.bytes => return Vec::new(),
        Some(base) => hashes(base.bytes),
        None => BTreeSet::new(),
    };
    let fresh = scan_beyond(before, draft.bytes, key);
    let seen = |secret: Secret| {
        let (rule, words) = match secret.tier {
            Tier::Specific => (Rule::SecretSpecific, "a credential"),
            Tier::Generic => (Rule::SecretGeneric, "looks like a credential"),
        };
        let message = format!("{words}: {}", secret.kind);
        Seen { secret: Some(secret.clone()), ..Seen::new(rule, Some(secret.line), message) }
    };
    fresh.into_iter().map(seen).collect()
}

/// The hashes of all credentials of a file.
fn hashes(bytes: &[u8]) -> BTreeSet<Sha256Hex> {
    let mut all = BTreeSet::new();
    for view in views(bytes, &PREFIXES) {
        scan_view(&view, &mut |_, _, value: &[u8]| {
            all.insert(Sha256Hex::of(value));
        });
    }
    all
}

/// The words without which a pattern cannot match, and whose they are.
struct Words {
    automaton: Option<AhoCorasick>,
    owners: Vec<usize>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut owners = Vec::new();
    for (at, pattern) in TABLE.iter().enumerate() {
        for word in pattern.words {
            words.push(*word);
            owners.push(at);
        }
    }
    let automaton = AhoCorasickBuilder::new().ascii_case_insensitive(true).build(words).ok();
    Words { automaton, owners }
});

/// Beginnings of tokens, for views that read backwards.
static PREFIXES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let plain = |pattern: &&Pattern| pattern.tier == Tier::Specific;
    let words = TABLE.iter().filter(plain).flat_map(|pattern| pattern.words.iter().copied());
    words.filter(|word| word.len() >= 4).collect()
});

fn scan_view(view: &View, found: &mut impl FnMut(&Pattern, usize, &[u8])) {
    let mut candidates = vec![false; TABLE.len()];
    match &WORDS.automaton {
        Some(automaton) => {
            for hit in automaton.find_overlapping_iter(&view.bytes) {
                candidates[WORDS.owners[hit.pattern().as_usize()]] = true;
            }
        }
        // Without the words every pattern is tried: slower, and nothing is missed.
        None => candidates.fill(true),
    }
    for (pattern, _) in TABLE.iter().zip(candidates).filter(|(_, candidate)| *candidate) {
        if pattern.tier == Tier::Generic && view.specific_only {
            continue;
        }
        let Some(regex) = pattern.regex() else { continue };
        for captures in regex.captures_iter(&view.bytes) {
            let Some(value) = captures.name("v").or_else(|| captures.get(0)) else { continue };
            if pattern.accepts(value.as_bytes(), captures.get(0).map_or(b"", |all| all.as_bytes()))
            {
                found(pattern, value.start(), value.as_bytes());
            }
        }
    }
}

fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
