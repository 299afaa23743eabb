//! What a draft is made of: encoding, characters, line endings, marks of merges and generators.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::policy::Policy;
use super::rule::Rule;
use super::{Comparison, FileChange, Seen};
use crate::text::{is_unseen, turns_direction};

/// Lines at the top of a file in which a generator says so.
const HEAD_LINES: usize = 20;

/// The first bytes of formats that are no text.
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

/// Everything that can be said without knowing the language.
pub(super) fn look(policy: &Policy, change: &FileChange<'_>, compared: &Comparison) -> Vec<Seen> {
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
    seen
}

fn encoding(base: Option<&[u8]>, draft: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let utf16 = |bytes: &[u8]| bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if MAGIC.iter().any(|magic| draft.starts_with(magic)) {
        seen.push(Seen::new(
            Rule::ContentBinary,
            None,
            "the first bytes of a format that is no text",
        ));
    }
    if utf16(draft) {
        seen.push(Seen::new(Rule::ContentEncoding, None, "UTF-16 instead of UTF-8"));
    } else if let Some(at) = draft.iter().position(|byte| *byte == 0) {
        let line = 1 + draft[..at].iter().filter(|byte| **byte == b'\n').count();
        seen.push(Seen::new(Rule::ContentNul, Some(line), "a NUL byte"));
    }
    let Err(error) = std::str::from_utf8(draft) else {
        let mark = |bytes: &[u8]| bytes.starts_with(b"\xef\xbb\xbf");
        let was = base.is_some_and(mark);
        if was != mark(draft) && (base.is_some() || mark(draft)) {
            let words = "a byte order mark comes or goes";
            seen.push(Seen::new(Rule::ContentEncoding, Some(1), words));
        }
        return seen;
    };
    if !utf16(draft) {
        let control = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c);
        let odd = draft.iter().filter(control).count();
        let line = 1 + draft[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        match odd * 20 > draft.len() {
            true => {
                seen.push(Seen::new(Rule::ContentBinary, Some(line), "bytes that are not text"))
            }
            false => {
                seen.push(Seen::new(Rule::ContentEncoding, Some(line), "bytes that are not UTF-8"))
            }
        }
    }
    seen
}

/// Characters are judged where the file did not have them before: a draft is not blamed for what
/// it found.
fn characters(old: Option<&str>, text: &str) -> Vec<Seen> {
    let known: BTreeSet<&str> = old.map(|old| old.lines().collect()).unwrap_or_default();
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
        // One finding of a kind is enough for a person, and a file full of them is no bomb.
        if !bidi && line.chars().any(turns_direction) {
            bidi = true;
            let words = "marks that change the direction of writing";
            seen.push(Seen::new(Rule::ContentBidi, number, words));
        }
        // A byte order mark is a matter of encoding.
        let body = if at == 0 { line.trim_start_matches('\u{feff}') } else { line };
        if !unseen && has_unseen(body) {
            unseen = true;
            let words = "characters that cannot be seen";
            seen.push(Seen::new(Rule::ContentInvisible, number, words));
        }
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if !mixed && (words.any(mixes) || passes_for_latin(line)) {
            mixed = true;
            let words = "a word that mixes letters of scripts that look alike";
            seen.push(Seen::new(Rule::ContentHomoglyph, number, words));
        }
    }
    seen
}

/// Emoji are made with joiners and selectors, so those count only away from emoji.
fn has_unseen(line: &str) -> bool {
    let mut before = '\0';
    for c in line.chars() {
        let control = c.is_control() && !matches!(c, '\t' | '\r' | '\u{c}');
        // One selector for each character: a row of them can carry hidden text.
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

/// Whether a word has Latin letters beside Cyrillic, Greek or wide ones.
fn mixes(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(is_alike)
}

/// Whether every word of a line is Latin, and one consists of letters of another script that look
/// Latin.
fn passes_for_latin(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut alike = false;
    for word in words.filter(|word| !word.is_ascii()) {
        let all = word.chars().all(|c| is_alike(c) || c == '_' || c.is_ascii_digit());
        if !all {
            return false;
        }
        alike |= word.chars().count() > 1;
    }
    alike && line.chars().any(|c| c.is_ascii_alphabetic())
}

/// µ, Ω and such stand in units and formulas; only letters that pass for Latin ones count.
fn is_alike(c: char) -> bool {
    "аАВсСеЕНіІјЈКМоОрРѕЅТхХуУԁԛԝ".contains(c)
        || "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυ".contains(c)
        || matches!(c, '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

fn line_endings(old: Option<&str>, text: &str) -> Option<Seen> {
    let stray = |text: &str| text.replace("\r\n", "").contains('\r');
    let Some(old) = old else {
        // Interpreters end a line at a lone carriage return; people who read the diff see one line.
        let words = "carriage returns that end lines";
        return stray(text).then(|| Seen::new(Rule::ContentEol, None, words));
    };
    #[derive(PartialEq)]
    enum Style {
        Lf,
        CrLf,
        Mixed,
    }
    let style = |text: &str| {
        let all = text.matches('\n').count();
        match text.matches("\r\n").count() {
            _ if all == 0 => None,
            0 => Some(Style::Lf),
            many if many == all => Some(Style::CrLf),
            _ => Some(Style::Mixed),
        }
    };
    let changed = style(old).zip(style(text)).is_some_and(|(was, is)| was != is);
    (changed || (stray(text) && !stray(old)))
        .then(|| Seen::new(Rule::ContentEol, None, "other line endings than before"))
}

fn merge_marks(old: Option<&str>, text: &str) -> Option<Seen> {
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
        Seen::new(Rule::ContentConflictMarkers, Some(line), "marks that a merge left behind")
    })
}

fn generated(change: &FileChange<'_>, old: Option<&str>, text: &str) -> Option<Seen> {
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
        .then(|| Seen::new(Rule::ContentGenerated, None, "a file that a program writes"))
}

fn minified(policy: &Policy, change: &FileChange<'_>, compared: &Comparison) -> Option<Seen> {
    let name = change.path.name().to_lowercase();
    if name.ends_with(".min.js") || name.ends_with(".min.css") {
        return Some(Seen::new(Rule::ContentMinified, None, "a minified file"));
    }
    let most = policy.limits.max_line_bytes;
    let (line, _) = compared.added.iter().find(|(_, line)| line.len() > most)?;
    Some(Seen::new(Rule::ContentMinified, Some(*line), format!("a line of more than {most} bytes")))
}
