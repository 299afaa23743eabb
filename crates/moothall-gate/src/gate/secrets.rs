//! Credentials in text: formats that vendors document, and values that merely look like one.
//!
//! Comments that ask scanners to look away are not obeyed: the author is the suspect. What the file
//! held before is not new. No value leaves this module: findings carry a keyed hash.

mod table;
mod views;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The credentials, in the order of lines.
    pub secrets: Vec<Secret>,
    /// Whether all of the text was looked at. If not, it may hold a credential.
    pub complete: bool,
    /// How much work it was, in steps of about one byte; grows with the length of the text.
    pub steps: u64,
}

impl Scan {
    /// Whether the text holds nothing that looks like a credential, as far as a scan can tell.
    pub fn is_clean(&self) -> bool {
        self.complete && self.secrets.is_empty()
    }
}

/// The most steps for each byte: every pattern on every view, once.
const STEPS_PER_BYTE: u64 = 4_000;
/// What a short text may cost beyond that.
const STEPS_AT_LEAST: u64 = 1_000_000;

/// The work of one scan. There is no clock here, so time is bounded by counted steps.
struct Work<'a> {
    steps: u64,
    most: u64,
    stop: &'a AtomicBool,
}

impl<'a> Work<'a> {
    fn for_bytes(bytes: usize, stop: &'a AtomicBool) -> Self {
        let most = (bytes as u64).saturating_mul(STEPS_PER_BYTE).saturating_add(STEPS_AT_LEAST);
        Self { steps: 0, most, stop }
    }

    fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps as u64);
    }

    /// Whether the scan must end, because it takes too long or nobody waits for it.
    fn is_over(&self) -> bool {
        self.steps > self.most || self.stop.load(Ordering::Relaxed)
    }
}

/// Finds credentials in bytes of any encoding.
pub fn scan(bytes: &[u8], key: &FingerprintKey) -> Scan {
    scan_beyond(BTreeSet::new(), bytes, key, &AtomicBool::new(false))
}

/// The same, without those whose hashes are known: they do not count towards the most, or a file
/// with many would hide one more.
fn scan_beyond(
    mut known: BTreeSet<Sha256Hex>,
    bytes: &[u8],
    key: &FingerprintKey,
    stop: &AtomicBool,
) -> Scan {
    let mut work = Work::for_bytes(bytes.len(), stop);
    let mut secrets: Vec<Secret> = Vec::new();
    let lines = Lines::of(bytes);
    for view in views(bytes, &PREFIXES, &mut work) {
        scan_view(&view, &mut work, &mut |pattern: &Pattern, at: usize, value: &[u8]| {
            let sha256 = Sha256Hex::of(value);
            if secrets.len() < MAX_FOUND && known.insert(sha256) {
                secrets.push(Secret {
                    kind: pattern.kind,
                    tier: pattern.tier,
                    line: lines.number(view.original(at)),
                    sha256,
                    fingerprint: key.fingerprint(value),
                });
            }
        });
    }
    secrets.sort_by_key(|secret| secret.line);
    Scan { secrets, complete: !work.is_over(), steps: work.steps }
}

/// What a draft has that its file had not.
pub(super) fn look(change: &FileChange<'_>, key: &FingerprintKey, stop: &AtomicBool) -> Vec<Seen> {
    let Some(draft) = change.draft else { return Vec::new() };
    let before: BTreeSet<Sha256Hex> = match change.base {
        Some(base) if base.bytes == draft.bytes => return Vec::new(),
        Some(base) => hashes(base.bytes, stop),
        None => BTreeSet::new(),
    };
    let fresh = scan_beyond(before, draft.bytes, key, stop);
    let seen = |secret: Secret| {
        let (rule, words) = match secret.tier {
            Tier::Specific => (Rule::SecretSpecific, "a credential"),
            Tier::Generic => (Rule::SecretGeneric, "looks like a credential"),
        };
        let message = format!("{words}: {}", secret.kind);
        Seen { secret: Some(secret.clone()), ..Seen::new(rule, Some(secret.line), message) }
    };
    let mut all: Vec<Seen> = fresh.secrets.into_iter().map(seen).collect();
    if !fresh.complete {
        let words = "too much work to look for credentials";
        all.push(Seen::new(Rule::GateError, None, words));
    }
    all
}

/// The hashes of all credentials of a file.
fn hashes(bytes: &[u8], stop: &AtomicBool) -> BTreeSet<Sha256Hex> {
    let mut all = BTreeSet::new();
    let mut work = Work::for_bytes(bytes.len(), stop);
    for view in views(bytes, &PREFIXES, &mut work) {
        scan_view(&view, &mut work, &mut |_, _, value: &[u8]| {
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

fn scan_view(view: &View, work: &mut Work<'_>, found: &mut impl FnMut(&Pattern, usize, &[u8])) {
    if work.is_over() {
        return;
    }
    work.spend(view.bytes.len());
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
        work.spend(view.bytes.len());
        for captures in regex.captures_iter(&view.bytes) {
            work.spend(captures.get(0).map_or(0, |all| all.len()));
            if work.is_over() {
                return;
            }
            let Some(value) = captures.name("v").or_else(|| captures.get(0)) else { continue };
            if pattern.accepts(value.as_bytes(), captures.get(0).map_or(b"", |all| all.as_bytes()))
            {
                found(pattern, value.start(), value.as_bytes());
            }
        }
    }
}

/// Where the lines of a text begin, so that the line of a finding is not counted from the top each
/// time.
struct Lines(Vec<usize>);

impl Lines {
    fn of(bytes: &[u8]) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Self(ends.map(|(at, _)| at).collect())
    }

    /// The line of a position, from 1.
    fn number(&self, at: usize) -> usize {
        1 + self.0.partition_point(|end| *end < at)
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
