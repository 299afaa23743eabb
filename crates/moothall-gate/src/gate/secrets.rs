//! Finds credentials in text: documented vendor formats, and values that look like a credential.
//!
//! Comments that tell scanners to ignore a line have no effect, because the author of the draft is
//! not trusted. Credentials that the file already had are not reported. No value leaves this
//! module: findings carry a keyed hash.

mod patterns;
mod views;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use sha2::{Digest, Sha256};

use self::patterns::{SecretMatch, SecretPattern, TABLE};
use self::views::{ScanView, for_each_view};
use super::rule::GateRule;
use super::{FileChange, RuleMatch};
use crate::Sha256Hex;

/// Further findings in a file are dropped.
const MAX_FOUND: usize = 50;

/// Key for the fingerprints, without which they cannot be matched to values.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

impl FingerprintKey {
    /// Creates a key from random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// HMAC-SHA-256 (RFC 2104), truncated to 64 bits, in hexadecimal.
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

/// Confidence of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretTier {
    /// A documented vendor format.
    Specific,
    /// Looks like a credential.
    Generic,
}

/// A detected credential, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFinding {
    /// Kind of credential, such as `github-token`.
    pub kind: &'static str,
    /// The confidence.
    pub tier: SecretTier,
    /// From 1.
    pub line: usize,
    /// Hash of the value, to match exceptions.
    pub sha256: Sha256Hex,
    /// Keyed hash, for display and the journal.
    pub fingerprint: String,
}

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretScan {
    /// Ordered by line.
    pub secrets: Vec<SecretFinding>,
    /// Placeholders in the format of a credential, ordered by line.
    pub examples: Vec<SecretFinding>,
    /// Whether the whole text was scanned. If not, it may contain a credential.
    pub complete: bool,
    /// Work done, in steps of about one byte; proportional to the length of the text.
    pub steps: u64,
}

impl SecretScan {
    /// Whether the whole text was scanned and no credential was found.
    pub fn is_clean(&self) -> bool {
        self.complete && self.secrets.is_empty()
    }
}

/// Step limit per byte: every pattern on every view, once.
const STEPS_PER_BYTE: u64 = 4_000;
/// Extra steps, so that short texts are always scanned completely.
const MIN_STEPS: u64 = 1_000_000;

/// Step budget of one scan. This code has no clock, so counted steps bound the time.
struct ScanBudget<'a> {
    steps: u64,
    most: u64,
    stop: &'a AtomicBool,
}

impl<'a> ScanBudget<'a> {
    fn for_bytes(bytes: usize, stop: &'a AtomicBool) -> Self {
        let most = (bytes as u64).saturating_mul(STEPS_PER_BYTE).saturating_add(MIN_STEPS);
        Self { steps: 0, most, stop }
    }

    fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps as u64);
    }

    /// Whether the scan must stop because the budget is spent or the caller cancelled it.
    fn is_over(&self) -> bool {
        self.steps > self.most || self.stop.load(Ordering::Relaxed)
    }
}

/// Scans bytes of any encoding for credentials.
pub fn scan(bytes: &[u8], key: &FingerprintKey) -> SecretScan {
    scan_beyond(BTreeSet::new(), bytes, key, &AtomicBool::new(false))
}

/// Like [`scan`], but ignores values with known hashes. They do not count towards [`MAX_FOUND`], or
/// a file with many known credentials could hide a new one.
fn scan_beyond(
    mut known: BTreeSet<Sha256Hex>,
    bytes: &[u8],
    key: &FingerprintKey,
    stop: &AtomicBool,
) -> SecretScan {
    let (mut secrets, mut examples) = (Vec::<SecretFinding>::new(), Vec::new());
    let lines = LineIndex::of(bytes);
    let work = for_each_match(bytes, stop, |view, pattern, kind, part| {
        let value = &view.bytes[part.clone()];
        let sha256 = Sha256Hex::of(value);
        let list = if kind == SecretMatch::Example { &mut examples } else { &mut secrets };
        if list.len() < MAX_FOUND && known.insert(sha256) {
            list.push(SecretFinding {
                kind: pattern.kind,
                tier: pattern.tier,
                line: lines.number(view.original(part.start..part.start + 1).start),
                sha256,
                fingerprint: key.fingerprint(value),
            });
        }
    });
    secrets.sort_by_key(|secret| secret.line);
    examples.sort_by_key(|example| example.line);
    SecretScan { secrets, examples, complete: !work.is_over(), steps: work.steps }
}

/// Reports credentials that the draft has and its base does not.
pub(crate) fn check(
    change: &FileChange<'_>,
    key: &FingerprintKey,
    stop: &AtomicBool,
) -> Vec<RuleMatch> {
    let Some(draft) = change.draft else { return Vec::new() };
    if change.base.is_some_and(|base| base.bytes == draft.bytes) {
        return Vec::new();
    }
    let mut fresh = scan_beyond(BTreeSet::new(), draft.bytes, key, stop);
    // Most files contain nothing that looks like a credential, and their base need not be scanned.
    if let Some(base) = change.base
        && !(fresh.secrets.is_empty() && fresh.examples.is_empty())
    {
        fresh = scan_beyond(hashes(base.bytes, stop), draft.bytes, key, stop);
    }
    let seen = |secret: SecretFinding| {
        let (rule, words) = match secret.tier {
            SecretTier::Specific => (GateRule::SecretSpecific, "credential"),
            SecretTier::Generic => (GateRule::SecretGeneric, "looks like a credential"),
        };
        let message = format!("{words}: {}", secret.kind);
        RuleMatch {
            secret: Some(secret.clone()),
            ..RuleMatch::new(rule, Some(secret.line), message)
        }
    };
    let mut all: Vec<RuleMatch> = fresh.secrets.into_iter().map(seen).collect();
    all.extend(fresh.examples.into_iter().map(|example| {
        let message = format!("looks like a documentation example: {}", example.kind);
        RuleMatch::new(GateRule::SecretExample, Some(example.line), message)
    }));
    if !fresh.complete {
        let words = "too large to scan completely for credentials";
        all.push(RuleMatch::new(GateRule::GateError, None, words));
    }
    all
}

/// Hashes of all credentials in a file.
fn hashes(bytes: &[u8], stop: &AtomicBool) -> BTreeSet<Sha256Hex> {
    let mut all = BTreeSet::new();
    for_each_match(bytes, stop, |view, _, _, part| {
        all.insert(Sha256Hex::of(&view.bytes[part]));
    });
    all
}

/// Shown instead of a text that cannot be scanned.
const UNSCANNED: &str = "[hidden: too large to scan for credentials]";

/// Replaces the credentials in a text by `[hidden: KIND]` and returns their number. An encoded
/// credential hides all its lines, and a text that cannot be scanned completely is hidden.
pub fn hide_secrets(text: &str) -> (String, u64) {
    let (bytes, stop) = (text.as_bytes(), AtomicBool::new(false));
    let lines = LineIndex::of(bytes);
    let mut plain: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut ranges: Vec<(usize, usize, &'static str)> = Vec::new();
    // The plain view comes first, so an encoded copy of a known value hides no line.
    let work = for_each_match(bytes, &stop, |view, pattern, kind, part| {
        if kind == SecretMatch::Example {
            return;
        }
        let value = &view.bytes[part.clone()];
        if view.is_plain() {
            plain.insert(value.to_vec());
            ranges.push((part.start, part.end, pattern.kind));
        } else if !plain.contains(value) {
            let part = view.original(part);
            let (start, _) = lines.range(part.start, bytes.len());
            let (_, end) = lines.range(part.end.saturating_sub(1), bytes.len());
            ranges.push((start, end, pattern.kind));
        }
    });
    if work.is_over() {
        return (UNSCANNED.to_owned(), 1);
    }
    ranges.sort_unstable();
    let (mut shown, mut hidden, mut from) = (String::with_capacity(text.len()), 0, 0);
    for (start, end, kind) in ranges {
        let (start, end) = (text.floor_char_boundary(start), text.ceil_char_boundary(end));
        if start >= from {
            shown.push_str(text.get(from..start).unwrap_or_default());
            shown.push_str(&format!("[hidden: {kind}]"));
            hidden += 1;
        }
        from = from.max(end);
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    (shown, hidden)
}

/// Keywords required by each pattern, and the patterns they belong to.
struct KeywordIndex {
    automaton: Option<AhoCorasick>,
    owners: Vec<usize>,
}

static KEYWORDS: LazyLock<KeywordIndex> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut owners = Vec::new();
    for (at, pattern) in TABLE.iter().enumerate() {
        for word in pattern.words {
            words.push(*word);
            owners.push(at);
        }
    }
    let automaton = AhoCorasickBuilder::new().ascii_case_insensitive(true).build(words).ok();
    KeywordIndex { automaton, owners }
});

/// Token prefixes, for the reversed view.
static PREFIXES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let plain = |pattern: &&SecretPattern| pattern.tier == SecretTier::Specific;
    let words = TABLE.iter().filter(plain).flat_map(|pattern| pattern.words.iter().copied());
    words.filter(|word| word.len() >= 4).collect()
});

/// Passes every match in every reading of a text to `found`, and returns the work done.
fn for_each_match<'a>(
    bytes: &[u8],
    stop: &'a AtomicBool,
    mut found: impl FnMut(&ScanView, &SecretPattern, SecretMatch, Range<usize>),
) -> ScanBudget<'a> {
    let mut work = ScanBudget::for_bytes(bytes.len(), stop);
    for_each_view(bytes, &PREFIXES, &mut work, &mut |view, work| scan_view(view, work, &mut found));
    work
}

fn scan_view(
    view: &ScanView,
    work: &mut ScanBudget<'_>,
    found: &mut impl FnMut(&ScanView, &SecretPattern, SecretMatch, Range<usize>),
) {
    if work.is_over() {
        return;
    }
    work.spend(view.bytes.len());
    let mut candidates = vec![false; TABLE.len()];
    match &KEYWORDS.automaton {
        Some(automaton) => {
            for hit in automaton.find_overlapping_iter(&view.bytes) {
                candidates[KEYWORDS.owners[hit.pattern().as_usize()]] = true;
            }
        }
        // Without the automaton, try every pattern: slower, but nothing is missed.
        None => candidates.fill(true),
    }
    for (pattern, _) in TABLE.iter().zip(candidates).filter(|(_, candidate)| *candidate) {
        if pattern.tier == SecretTier::Generic && view.specific_only {
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
            let all = captures.get(0).map_or(&b""[..], |all| all.as_bytes());
            let kind = pattern.classify(value.as_bytes(), all);
            if kind != SecretMatch::Other {
                found(view, pattern, kind, value.range());
            }
        }
    }
}

/// Line index, so that finding a line number does not rescan the text.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn of(bytes: &[u8]) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Self(ends.map(|(at, _)| at).collect())
    }

    /// Line number of a position, from 1.
    fn number(&self, at: usize) -> usize {
        1 + self.0.partition_point(|end| *end < at)
    }

    /// Start and end of the line at a position, in a text of this length.
    fn range(&self, at: usize, length: usize) -> (usize, usize) {
        let line = self.0.partition_point(|end| *end < at);
        let start =
            line.checked_sub(1).and_then(|before| self.0.get(before)).map_or(0, |end| end + 1);
        (start, self.0.get(line).copied().unwrap_or(length))
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
