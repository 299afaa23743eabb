//! Language-independent rules: encoding, characters, line endings, conflict markers and generated
//! files.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::policy::Policy;
use super::rule::GateRule;
use super::{FileChange, FileComparison, RuleMatch};
use crate::text::{is_unseen, turns_direction};

/// Generated-file markers are searched in this many lines at the top.
const HEAD_LINES: usize = 20;

/// Magic bytes of binary formats.
const MAGIC: &[&[u8]] = &[
    b"\x7fELF",
    b"MZ",
    b"PK\x03\x04",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"%PDF-",
    b"\x1f\x8b",
    b"\xca\xfe\xba\xbe",
    b"\0asm",
];

static GENERATED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)@generated\b|\bcode generated\b.*\bdo not edit\b|\b(?:auto-?generated|generated) (?:file|by|from)\b.*\bdo not (?:edit|modify)\b|linguist-generated",
    )
    .ok()
});

pub(crate) fn check(
    policy: &Policy,
    change: &FileChange<'_>,
    compared: &FileComparison,
) -> Vec<RuleMatch> {
    let Some(draft) = change.draft else { return Vec::new() };
    let base = change.base.map(|content| content.bytes);
    let mut seen = encoding(base, draft.bytes);
    let Ok(text) = std::str::from_utf8(draft.bytes) else { return seen };
    let old = base.map(String::from_utf8_lossy);
    let old = old.as_deref();
    seen.extend(characters(old, text));
    seen.extend(line_endings(old, text));
    seen.extend(merge_marks(old, text));
    seen.extend(generated(change, old, text));
    seen.extend(minified(policy, change, compared));
    seen.extend(lfs_pointer(text));
    seen
}

/// A pointer of Git LFS stands for content on another server.
fn lfs_pointer(text: &str) -> Option<RuleMatch> {
    const MAX_POINTER_BYTES: usize = 1024;
    let version = text.lines().next()?.strip_prefix("version ")?;
    let is_lfs = version.contains("git-lfs") || version.contains("hawser");
    let has_oid = || text.lines().any(|line| line.starts_with("oid "));
    (text.len() <= MAX_POINTER_BYTES && is_lfs && has_oid()).then(|| {
        let words = "Git LFS pointer: the content is not part of the change";
        RuleMatch::new(GateRule::ContentLfsPointer, Some(1), words)
    })
}

fn encoding(base: Option<&[u8]>, draft: &[u8]) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    let utf16 = |bytes: &[u8]| bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if MAGIC.iter().any(|magic| draft.starts_with(magic)) {
        seen.push(RuleMatch::new(
            GateRule::ContentBinary,
            None,
            "starts with the magic bytes of a binary format",
        ));
    }
    if utf16(draft) {
        seen.push(RuleMatch::new(GateRule::ContentEncoding, None, "UTF-16 instead of UTF-8"));
    } else if let Some(at) = draft.iter().position(|byte| *byte == 0) {
        let line = 1 + draft[..at].iter().filter(|byte| **byte == b'\n').count();
        seen.push(RuleMatch::new(GateRule::ContentNul, Some(line), "contains a NUL byte"));
    }
    let Err(error) = std::str::from_utf8(draft) else {
        let mark = |bytes: &[u8]| bytes.starts_with(b"\xef\xbb\xbf");
        let was = base.is_some_and(mark);
        if was != mark(draft) && (base.is_some() || mark(draft)) {
            let words = "byte order mark added or removed";
            seen.push(RuleMatch::new(GateRule::ContentEncoding, Some(1), words));
        }
        return seen;
    };
    if !utf16(draft) {
        let control = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c);
        let odd = draft.iter().filter(control).count();
        let line = 1 + draft[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        match odd * 20 > draft.len() {
            true => {
                seen.push(RuleMatch::new(GateRule::ContentBinary, Some(line), "binary content"))
            }
            false => {
                seen.push(RuleMatch::new(GateRule::ContentEncoding, Some(line), "not valid UTF-8"))
            }
        }
    }
    seen
}

/// Only lines that the file did not have before are checked; existing characters are not the
/// draft's fault.
fn characters(old: Option<&str>, text: &str) -> Vec<RuleMatch> {
    // Most files are plain ASCII, and need no set of old lines.
    let known = LazyCell::new(|| -> BTreeSet<&str> {
        old.map(|old| old.lines().collect()).unwrap_or_default()
    });
    let mut seen = Vec::new();
    let (mut bidi, mut unseen, mut mixed) = (false, false, false);
    for (at, line) in text.lines().enumerate() {
        if line.is_ascii() && !line.bytes().any(|byte| byte < 0x20 && byte != b'\t') {
            continue;
        }
        if known.contains(line) {
            continue;
        }
        let number = Some(at + 1);
        // Report each kind once, so a file full of such characters does not flood the
        // findings.
        if !bidi && line.chars().any(turns_direction) {
            bidi = true;
            let words = "characters that change the text direction";
            seen.push(RuleMatch::new(GateRule::ContentBidi, number, words));
        }
        // Byte order marks are covered by the encoding rule.
        let body = if at == 0 { line.trim_start_matches('\u{feff}') } else { line };
        if !unseen && has_unseen(body) {
            unseen = true;
            let words = "invisible characters";
            seen.push(RuleMatch::new(GateRule::ContentInvisible, number, words));
        }
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if !mixed && (words.any(mixes_scripts) || has_lookalike_word(line)) {
            mixed = true;
            let words = "look-alike letters from different scripts";
            seen.push(RuleMatch::new(GateRule::ContentHomoglyph, number, words));
        }
    }
    seen
}

/// Emoji sequences use joiners and variation selectors, so these only count when they do not follow
/// an emoji.
fn has_unseen(line: &str) -> bool {
    let mut before = '\0';
    for c in line.chars() {
        let control = c.is_control() && !matches!(c, '\t' | '\r' | '\u{c}');
        // Allow one selector per character: a sequence of them can carry hidden text.
        let follows_visible =
            !is_unseen(before) || (c == '\u{200d}' && matches!(before, '\u{fe0e}' | '\u{fe0f}'));
        let of_emoji = matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
            && follows_visible
            && (before as u32 > 0x2000
                || before == '\u{a9}'
                || before == '\u{ae}'
                || before.is_ascii_digit()
                || before == '#'
                || before == '*');
        if (control || is_unseen(c)) && !turns_direction(c) && !of_emoji {
            return true;
        }
        before = c;
    }
    false
}

/// Whether a word has Latin letters next to Cyrillic, Greek or full-width look-alikes.
fn mixes_scripts(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(is_latin_lookalike)
}

/// Whether a line otherwise in Latin letters has a word made only of look-alikes from another
/// script.
fn has_lookalike_word(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut alike = false;
    for word in words.filter(|word| !word.is_ascii()) {
        let all = word.chars().all(|c| is_latin_lookalike(c) || c == '_' || c.is_ascii_digit());
        if !all {
            return false;
        }
        alike |= word.chars().count() > 1;
    }
    alike && line.chars().any(|c| c.is_ascii_alphabetic())
}

/// Only letters that look Latin count. µ, Ω and similar are common in units and formulas.
fn is_latin_lookalike(c: char) -> bool {
    "аАВсСеЕНіІјЈКМоОрРѕЅТхХуУԁԛԝ".contains(c)
        || "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυ".contains(c)
        || matches!(c, '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

fn line_endings(old: Option<&str>, text: &str) -> Option<RuleMatch> {
    let stray = |text: &str| text.replace("\r\n", "").contains('\r');
    let Some(old) = old else {
        // Interpreters end a line at a lone carriage return, but a diff shows one line.
        let words = "lone carriage returns as line endings";
        return stray(text).then(|| RuleMatch::new(GateRule::ContentEol, None, words));
    };
    #[derive(PartialEq)]
    enum LineEndingStyle {
        Lf,
        CrLf,
        Mixed,
    }
    let style = |text: &str| {
        let all = text.matches('\n').count();
        match text.matches("\r\n").count() {
            _ if all == 0 => None,
            0 => Some(LineEndingStyle::Lf),
            many if many == all => Some(LineEndingStyle::CrLf),
            _ => Some(LineEndingStyle::Mixed),
        }
    };
    let changed = style(old).zip(style(text)).is_some_and(|(was, is)| was != is);
    (changed || (stray(text) && !stray(old)))
        .then(|| RuleMatch::new(GateRule::ContentEol, None, "line endings changed"))
}

fn merge_marks(old: Option<&str>, text: &str) -> Option<RuleMatch> {
    let first = |text: &str| {
        let at = |mark: &str| {
            text.lines().position(|line| {
                line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
        };
        let (start, end) = (at("<<<<<<<")?, at(">>>>>>>")?);
        (start < end).then_some(start + 1)
    };
    let line = first(text)?;
    let before = old.and_then(first).is_some();
    (!before).then(|| {
        RuleMatch::new(GateRule::ContentConflictMarkers, Some(line), "merge conflict markers")
    })
}

fn generated(change: &FileChange<'_>, old: Option<&str>, text: &str) -> Option<RuleMatch> {
    let says = |text: &str| {
        let pattern = GENERATED.as_ref();
        pattern
            .is_none_or(|pattern| text.lines().take(HEAD_LINES).any(|line| pattern.is_match(line)))
    };
    let name = change.path.name().to_lowercase();
    const LOCKS: &[&str] = &[
        "cargo.lock",
        "package-lock.json",
        "pnpm-lock.yaml",
        "yarn.lock",
        "poetry.lock",
        "uv.lock",
        "go.sum",
        "gemfile.lock",
        "composer.lock",
        "pipfile.lock",
        "flake.lock",
        "npm-shrinkwrap.json",
    ];
    (LOCKS.contains(&name.as_str()) || says(text) || old.is_some_and(says))
        .then(|| RuleMatch::new(GateRule::ContentGenerated, None, "generated file"))
}

fn minified(
    policy: &Policy,
    change: &FileChange<'_>,
    compared: &FileComparison,
) -> Option<RuleMatch> {
    let name = change.path.name().to_lowercase();
    if name.ends_with(".min.js") || name.ends_with(".min.css") {
        return Some(RuleMatch::new(GateRule::ContentMinified, None, "minified file"));
    }
    let most = policy.limits.max_line_bytes;
    let (line, _) = compared.added.iter().find(|(_, line)| line.len() > most)?;
    Some(RuleMatch::new(
        GateRule::ContentMinified,
        Some(*line),
        format!("line longer than {most} bytes"),
    ))
}
