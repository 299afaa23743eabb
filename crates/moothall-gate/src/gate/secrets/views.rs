//! Alternative readings of the same bytes (decoded, unescaped, joined), so that encoding a
//! credential does not hide it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::AhoCorasick;

use super::ScanBudget;
use crate::text::is_unseen;

/// Shorter runs are too short to encode a credential.
const MIN_RUN: usize = 24;
/// Shorter pieces of decoded text are noise.
const MIN_TEXT: usize = 16;
/// Maximum distance between two literals that are joined.
const MAX_JOINER_BYTES: usize = 200;
/// The longest escape: `\u{00000041}`.
const MAX_ESCAPE: usize = 12;

/// A reading of the text, with a map back to the original.
#[derive(Debug)]
pub(crate) struct ScanView {
    pub(crate) bytes: Vec<u8>,
    map: Arc<PositionMap>,
    /// For decoded text, where only vendor formats count: random bytes would match generic
    /// patterns.
    pub(crate) specific_only: bool,
}

impl ScanView {
    /// Whether this is the text itself.
    pub(crate) fn is_plain(&self) -> bool {
        self.map.base.is_none() && self.map.entries.is_empty()
    }

    /// Maps a part of the view to a part of the original that begins and ends in the same lines.
    pub(crate) fn original(&self, part: Range<usize>) -> Range<usize> {
        self.map.original(part)
    }
}

/// Positions in a view and the matching positions in the text it was made from, in order. Between
/// two of them, a position is mapped to the right line, and that is what findings need: an entry for
/// every removed byte would take many times the memory of the text.
#[derive(Debug)]
struct PositionMap {
    entries: Vec<(usize, usize)>,
    /// For decoded text: where the encoded text of each entry ends.
    ends: Option<Vec<usize>>,
    /// For reversed text: its length. It needs no entries.
    reversed_length: Option<usize>,
    /// The map of the text that the view was made from, unless that is the original.
    base: Option<Arc<Self>>,
}

impl PositionMap {
    fn original(&self, part: Range<usize>) -> Range<usize> {
        let ends = [part.start, part.end.saturating_sub(1).max(part.start)].map(|at| self.at(at));
        // The reversed view goes backwards.
        let found = match ends {
            [first, last] if first.start <= last.start => first.start..last.end,
            [first, last] => last.start..first.end,
        };
        match &self.base {
            Some(base) => base.original(found),
            None => found,
        }
    }

    /// What one byte of the view was made from.
    fn at(&self, at: usize) -> Range<usize> {
        if let Some(length) = self.reversed_length {
            let found = length.saturating_sub(at + 1);
            return found..found + 1;
        }
        let next = self.entries.partition_point(|(position, _)| *position <= at);
        let index = next.saturating_sub(1);
        let Some((position, original)) = self.entries.get(index).copied() else {
            return at..at + 1;
        };
        if let Some(end) = self.ends.as_ref().and_then(|ends| ends.get(index)) {
            return original..*end;
        }
        let found = original + (at - position);
        // A character can be longer in the view; the next line must not be reached.
        let found = match self.entries.get(next) {
            Some((_, limit)) if *limit > original => found.min(limit - 1),
            _ => found,
        };
        found..found + 1
    }
}

/// A view that is being made.
struct ViewBuilder {
    bytes: Vec<u8>,
    entries: Vec<(usize, usize)>,
    ends: Option<Vec<usize>>,
    reversed_length: Option<usize>,
}

impl ViewBuilder {
    fn with_capacity(bytes: usize) -> Self {
        Self { entries: vec![(0, 0)], ..Self::of(Vec::with_capacity(bytes)) }
    }

    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, entries: Vec::new(), ends: None, reversed_length: None }
    }

    /// Notes that the text continues at this position, where a line starts.
    fn start_line(&mut self, at: usize) {
        let here = self.bytes.len();
        match self.entries.last_mut() {
            Some((position, from)) if *from + (here - *position) == at => {}
            // Only the last line that starts at a position is looked up. Texts that are joined
            // entirely would have an entry for every line.
            Some((position, from)) if *position == here => *from = at,
            _ => self.entries.push((here, at)),
        }
    }

    fn finish(self, base: Option<&Arc<PositionMap>>, specific_only: bool) -> ScanView {
        let Self { bytes, entries, ends, reversed_length } = self;
        let map = PositionMap { entries, ends, reversed_length, base: base.cloned() };
        ScanView { bytes, map: Arc::new(map), specific_only }
    }
}

/// Passes every reading of a text to `visit`, the plain one first. Each costs one pass over the
/// text. A reading is dropped as soon as no other is made from it, because a hostile text has about
/// ten.
pub(crate) fn for_each_view(
    bytes: &[u8],
    prefixes: &[&str],
    work: &mut ScanBudget<'_>,
    visit: &mut impl FnMut(&ScanView, &mut ScanBudget<'_>),
) {
    work.spend(2 * bytes.len());
    let mut last =
        utf16(bytes).unwrap_or_else(|| ViewBuilder::of(bytes.to_vec()).finish(None, false));
    visit(&last, work);
    if let Some(view) = without_unseen(&last) {
        last = view;
        visit(&last, work);
    }
    work.spend(2 * last.bytes.len());
    if let Some(view) = unescaped(&last, work) {
        last = view;
        visit(&last, work);
    }
    if let Some(view) = joined(&last, work) {
        visit(&view, work);
        visit_decoded(&view, work, visit);
    }
    visit_decoded(&last, work, visit);
    work.spend(last.bytes.len());
    if let Some(view) = unwrapped(&last) {
        visit_decoded(&view, work, visit);
    }
    if let Some(view) = reversed(&last, prefixes, work) {
        visit(&view, work);
    }
}

/// Passes a text to `visit`, decoded once and twice.
fn visit_decoded(
    text: &ScanView,
    work: &mut ScanBudget<'_>,
    visit: &mut impl FnMut(&ScanView, &mut ScanBudget<'_>),
) {
    if let Some(once) = decoded(text, work) {
        visit(&once, work);
        if let Some(twice) = decoded(&once, work) {
            visit(&twice, work);
        }
    }
}

/// Decodes UTF-16: text with a byte order mark, or where about every other byte is zero.
fn utf16(bytes: &[u8]) -> Option<ScanView> {
    let little = bytes.starts_with(b"\xff\xfe");
    let big = bytes.starts_with(b"\xfe\xff");
    let zeros = |at: usize| bytes.iter().skip(at).step_by(2).filter(|byte| **byte == 0).count();
    let many = bytes.len() / 3;
    let big = if little || big { big } else { zeros(0) > many };
    if !(little || big || (bytes.len() >= 16 && zeros(1) > many)) {
        return None;
    }
    let units = bytes.chunks_exact(2).map(|pair| match big {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    });
    let mut view = ViewBuilder::with_capacity(bytes.len() / 2);
    let mut at = 0;
    for unit in char::decode_utf16(units) {
        let read = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
        view.bytes.extend_from_slice(read.encode_utf8(&mut [0; 4]).as_bytes());
        at += 2 * read.len_utf16();
        if read == '\n' {
            view.start_line(at);
        }
    }
    Some(view.finish(None, false))
}

/// Removes invisible characters.
fn without_unseen(source: &ScanView) -> Option<ScanView> {
    let bytes = &source.bytes;
    if bytes.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.chars().any(is_unseen) {
        return None;
    }
    let mut view = ViewBuilder::with_capacity(bytes.len());
    for (at, c) in text.char_indices() {
        if !is_unseen(c) {
            view.bytes.extend_from_slice(&bytes[at..at + c.len_utf8()]);
        }
        if c == '\n' {
            view.start_line(at + 1);
        }
    }
    Some(view.finish(Some(&source.map), false))
}

/// Decodes `\n`, `\x41`, `\u0041`, `\u{41}`, `\101`, `%41`, `&#65;` and `&#x41;`.
fn unescaped(source: &ScanView, work: &mut ScanBudget<'_>) -> Option<ScanView> {
    let bytes = &source.bytes;
    let mut view = ViewBuilder::with_capacity(bytes.len());
    let mut at = 0;
    let mut found = false;
    while at < bytes.len() {
        let escape = match bytes[at] {
            b'\\' | b'%' | b'&' => {
                work.spend(MAX_ESCAPE);
                escape(&bytes[at..])
            }
            _ => None,
        };
        match escape {
            Some((value, length)) if value.is_ascii_graphic() || value == b'\n' => {
                view.bytes.push(value);
                at += length;
                found = true;
            }
            _ => {
                view.bytes.push(bytes[at]);
                at += 1;
                if bytes[at - 1] == b'\n' {
                    view.start_line(at);
                }
            }
        }
    }
    found.then(|| view.finish(Some(&source.map), true))
}

/// Decodes one escape. Returns the byte and the length of the escape.
fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    let number = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::try_from(u32::from_str_radix(digits, radix).ok()?).ok()
    };
    // Parses digits up to a closing character. Returns the value and the total length.
    let closed = |skip: usize, close: u8, radix| {
        let digits = rest.get(skip..)?;
        let end = digits.iter().take(MAX_ESCAPE - skip).position(|byte| *byte == close)?;
        Some((number(&digits[..end], radix)?, skip + end + 1))
    };
    match rest {
        // Any white space separates words.
        [b'\\', b'n' | b't' | b'r', ..] => Some((b'\n', 2)),
        [b'\\', b'x', a, b, ..] => Some((number(&[*a, *b], 16)?, 4)),
        [b'\\', b'u', b'{', ..] => closed(3, b'}', 16),
        [b'\\', b'u', b'0', b'0', a, b, ..] => Some((number(&[*a, *b], 16)?, 6)),
        [b'\\', a @ b'0'..=b'3', b, c, ..] => Some((number(&[*a, *b, *c], 8)?, 4)),
        [b'%', a, b, ..] => Some((number(&[*a, *b], 16)?, 3)),
        [b'&', b'#', b'x' | b'X', ..] => closed(3, b';', 16),
        [b'&', b'#', ..] => closed(2, b';', 10),
        _ => None,
    }
}

/// Joins adjacent string literals (`"a" + "b"`, `"a" "b"`, `'a' . 'b'`, `["a", "b"]`, also with a
/// comment in between) and lines that end in a backslash.
fn joined(source: &ScanView, work: &mut ScanBudget<'_>) -> Option<ScanView> {
    let bytes = &source.bytes;
    let mut view = ViewBuilder::with_capacity(bytes.len());
    let mut at = 0;
    let mut found = false;
    while at < bytes.len() {
        let rest = &bytes[at + 1..];
        let (skip, looked) = match bytes[at] {
            quote @ (b'"' | b'\'' | b'`') => joiner_length(rest, quote),
            b'\\' => line_end(rest),
            _ => (None, 0),
        };
        work.spend(1 + looked);
        match skip {
            Some(skip) => {
                let has_line_break = rest[..skip].contains(&b'\n');
                at += skip + 1;
                if has_line_break {
                    view.start_line(at);
                }
                found = true;
            }
            None => {
                view.bytes.push(bytes[at]);
                at += 1;
                if bytes[at - 1] == b'\n' {
                    view.start_line(at);
                }
            }
        }
    }
    found.then(|| view.finish(Some(&source.map), true))
}

/// Returns the length of the text between a closing quote and the next opening one if it only joins
/// two literals, and the number of bytes examined.
fn joiner_length(after: &[u8], quote: u8) -> (Option<usize>, usize) {
    let after = &after[..after.len().min(MAX_JOINER_BYTES)];
    let mut operators = 0;
    let mut at = 0;
    while let Some(byte) = after.get(at) {
        match byte {
            byte if *byte == quote => return ((at > 0).then_some(at + 1), at),
            b'"' | b'\'' if operators > 0 => return (Some(at + 1), at),
            b' ' | b'\t' | b'\n' | b'\r' | b'\\' => {}
            b'+' | b'.' | b'&' | b'~' | b',' => operators += 1,
            // `f"…"` and `b"…"`.
            b'f' | b'b' | b'r' | b'u' if at > 0 && after.get(at + 1) == Some(&quote) => {}
            b'#' | b'/' => match comment(&after[at..]) {
                Some(length) => at += length - 1,
                None => return (None, at),
            },
            _ => return (None, at),
        }
        at += 1;
    }
    (None, at)
}

/// The length of a comment, including the line break that ends it.
fn comment(text: &[u8]) -> Option<usize> {
    match text {
        [b'/', b'*', rest @ ..] => {
            rest.windows(2).position(|pair| pair == b"*/").map(|end| end + 4)
        }
        [b'#', ..] | [b'/', b'/', ..] => {
            text.iter().position(|byte| *byte == b'\n').map(|end| end + 1)
        }
        _ => None,
    }
}

/// Returns the length of a line break and the blanks around it if only blanks precede it, and the
/// number of bytes examined.
fn line_end(after: &[u8]) -> (Option<usize>, usize) {
    let blanks =
        |bytes: &[u8]| bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    let end = blanks(after);
    if after.get(end) != Some(&b'\n') {
        return (None, end);
    }
    let all = end + 1 + blanks(&after[end + 1..]);
    (Some(all), all)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Joins consecutive lines of base64 or hexadecimal digits into one run and drops all other lines.
fn unwrapped(source: &ScanView) -> Option<ScanView> {
    let mut view = ViewBuilder::of(Vec::new());
    let mut lines = 0;
    let mut wrapped = false;
    let mut next = 0;
    for line in source.bytes.split(|byte| *byte == b'\n') {
        let at = next;
        next += line.len() + 1;
        let line = line.trim_ascii();
        let line = line.strip_suffix(b"==").or_else(|| line.strip_suffix(b"=")).unwrap_or(line);
        if !line.is_empty() && line.iter().all(|byte| is_digit(*byte)) {
            view.start_line(at);
            view.bytes.extend_from_slice(line);
            lines += 1;
            wrapped |= lines > 1;
        } else if lines > 0 {
            view.bytes.push(b'\n');
            lines = 0;
        }
    }
    wrapped.then(|| view.finish(Some(&source.map), true))
}

/// Decodes every run of base64 or hexadecimal digits. A run may start anywhere in a group of four
/// digits, and binary data may precede the text.
fn decoded(source: &ScanView, work: &mut ScanBudget<'_>) -> Option<ScanView> {
    let bytes = &source.bytes;
    let mut view = ViewBuilder::of(Vec::new());
    let mut ends = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| is_digit(**byte)).count();
        work.spend(1 + run);
        if run >= MIN_RUN {
            let digits = &bytes[at..at + run];
            work.spend(5 * run);
            let readings =
                hex(digits).into_iter().chain((0..4).filter_map(|from| base64(&digits[from..])));
            for read in readings {
                let text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
                for piece in read.split(|byte| !text(byte)).filter(|piece| piece.len() >= MIN_TEXT)
                {
                    view.entries.push((view.bytes.len(), at));
                    ends.push(at + run);
                    view.bytes.extend_from_slice(piece);
                    view.bytes.push(b'\n');
                }
            }
        }
        at += run.max(1);
    }
    view.ends = Some(ends);
    (!view.bytes.is_empty()).then(|| view.finish(Some(&source.map), true))
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.len().is_multiple_of(2).then(|| text.chunks_exact(2).map(pair).collect())?
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: u8| {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        }))
    };
    let mut read = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | value(*byte)?;
        }
        let bits = bits << (6 * (4 - group.len()));
        let [_, a, b, c] = bits.to_be_bytes();
        read.extend_from_slice(&[a, b, c][..group.len().saturating_sub(1)]);
    }
    Some(read)
}

/// Reverses the text if it contains a reversed token prefix.
fn reversed(source: &ScanView, prefixes: &[&str], work: &mut ScanBudget<'_>) -> Option<ScanView> {
    let bytes = &source.bytes;
    static REVERSED_PREFIXES: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let automaton = REVERSED_PREFIXES.get_or_init(|| {
        let distinct = |prefix: &&&str| prefix.contains(['_', '-']) || **prefix == "AKIA";
        let back = |prefix: &&str| prefix.chars().rev().collect::<String>();
        AhoCorasick::new(prefixes.iter().filter(distinct).map(back)).ok()
    });
    work.spend(bytes.len());
    // Without the automaton, reverse every text: slower, but nothing is missed.
    if !automaton.as_ref().is_none_or(|automaton| automaton.is_match(bytes)) {
        return None;
    }
    let mut back = bytes.to_vec();
    back.reverse();
    let view = ViewBuilder { reversed_length: Some(bytes.len()), ..ViewBuilder::of(back) };
    Some(view.finish(Some(&source.map), true))
}
