//! Other ways to read the same bytes, so that a credential cannot hide behind how it is written.

use crate::drafts::is_unseen;

/// Runs shorter than this decode to nothing that could be a credential.
const MIN_RUN: usize = 24;
/// Longer runs are pictures and archives.
const MAX_RUN: usize = 64 * 1024;

/// A way to read, and where each part of it comes from.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// Positions in the view and the originals they stand for, in order.
    map: Vec<(usize, usize)>,
    /// Decoded text: only formats of vendors count there, because noise decodes to noise.
    pub(super) specific_only: bool,
}

impl View {
    fn whole(bytes: Vec<u8>) -> Self {
        Self { bytes, map: vec![(0, 0)], specific_only: false }
    }

    /// Where a position of the view is in the original.
    pub(super) fn original(&self, at: usize) -> usize {
        let before = self.map.partition_point(|(position, _)| *position <= at);
        match before.checked_sub(1).and_then(|index| self.map.get(index)) {
            Some((position, original)) => original + (at - position),
            None => 0,
        }
    }
}

/// All views that differ from the plain one.
pub(super) fn views(bytes: &[u8], prefixes: &[&str]) -> Vec<View> {
    let mut views = Vec::new();
    let text = match utf16(bytes) {
        Some(view) => {
            let text = view.bytes.clone();
            views.push(view);
            text
        }
        None => bytes.to_vec(),
    };
    views.push(View::whole(text.clone()));
    let plain = without_unseen(&text);
    let seen = plain.as_ref().map_or(&text, |view| &view.bytes).clone();
    views.extend(plain);
    let unescaped = unescaped(&seen);
    let readable = unescaped.as_ref().map_or(&seen, |view| &view.bytes).clone();
    views.extend(unescaped);
    let joined = joined(&readable);
    if let Some(joined) = &joined {
        views.extend(decoded(&joined.bytes));
    }
    views.extend(joined);
    views.extend(decoded(&readable));
    views.extend(reversed(&readable, prefixes));
    views
}

/// UTF-16 with a byte order mark, or bytes of which every other one is zero.
fn utf16(bytes: &[u8]) -> Option<View> {
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
    let text: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let map = (0..text.len()).step_by(64).map(|at| (at, at * 2)).collect();
    Some(View { bytes: text.into_bytes(), map, specific_only: false })
}

/// Without characters that leave no ink.
fn without_unseen(bytes: &[u8]) -> Option<View> {
    if bytes.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.chars().any(is_unseen) {
        return None;
    }
    let mut view = View { bytes: Vec::new(), map: vec![(0, 0)], specific_only: false };
    for (at, c) in text.char_indices() {
        if is_unseen(c) {
            view.map.push((view.bytes.len(), at + c.len_utf8()));
        } else {
            view.bytes.extend_from_slice(&bytes[at..at + c.len_utf8()]);
        }
    }
    Some(view)
}

/// With `\x41`, `\u0041` and `%41` read as what they stand for.
fn unescaped(bytes: &[u8]) -> Option<View> {
    let mut view =
        View { bytes: Vec::with_capacity(bytes.len()), map: vec![(0, 0)], specific_only: true };
    let mut at = 0;
    let mut found = false;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (digits, skip): (&[u8], usize) = match rest {
            [b'\\', b'x', a, b, ..] => (&[*a, *b], 4),
            [b'\\', b'u', b'0', b'0', a, b, ..] => (&[*a, *b], 6),
            [b'%', a, b, ..] => (&[*a, *b], 3),
            _ => (&[], 0),
        };
        let value =
            std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match value {
            Some(value) if value.is_ascii_graphic() => {
                view.bytes.push(value);
                at += skip;
                view.map.push((view.bytes.len(), at));
                found = true;
            }
            _ => {
                view.bytes.push(bytes[at]);
                at += 1;
            }
        }
    }
    found.then_some(view)
}

/// With neighbouring string literals as one: `"a" + "b"`, `"a" "b"`, `'a' . 'b'`, and lines that
/// end in a backslash.
fn joined(bytes: &[u8]) -> Option<View> {
    let mut view =
        View { bytes: Vec::with_capacity(bytes.len()), map: vec![(0, 0)], specific_only: true };
    let mut at = 0;
    let mut found = false;
    while at < bytes.len() {
        let skip = match bytes[at] {
            quote @ (b'"' | b'\'' | b'`') => glue(&bytes[at + 1..], quote).map(|more| more + 1),
            b'\\' => line_end(&bytes[at + 1..]).map(|more| more + 1),
            _ => None,
        };
        match skip {
            Some(skip) => {
                at += skip;
                view.map.push((view.bytes.len(), at));
                found = true;
            }
            None => {
                view.bytes.push(bytes[at]);
                at += 1;
            }
        }
    }
    found.then_some(view)
}

/// The length of what stands between a closing quote and the next opening one, if it only glues.
fn glue(after: &[u8], quote: u8) -> Option<usize> {
    let mut operators = 0;
    for (at, byte) in after.iter().enumerate().take(200) {
        match byte {
            byte if *byte == quote => return (at > 0).then_some(at + 1),
            b'"' | b'\'' if operators > 0 => return Some(at + 1),
            b' ' | b'\t' | b'\n' | b'\r' | b'\\' => {}
            b'+' | b'.' | b'&' | b'~' => operators += 1,
            // `f"…"` and `b"…"`.
            b'f' | b'b' | b'r' | b'u' if at > 0 && after.get(at + 1) == Some(&quote) => {}
            _ => return None,
        }
    }
    None
}

/// The length of a line break with the blanks around it, if nothing else is before it. Looking only
/// at blanks keeps the whole scan linear.
fn line_end(after: &[u8]) -> Option<usize> {
    let blanks =
        |bytes: &[u8]| bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    let end = blanks(after);
    (after.get(end) == Some(&b'\n')).then(|| end + 1 + blanks(&after[end + 1..]))
}

/// Every run of base64 or hexadecimal digits that decodes to text.
fn decoded(bytes: &[u8]) -> Option<View> {
    let mut view = View { bytes: Vec::new(), map: Vec::new(), specific_only: true };
    let is_digit =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| is_digit(**byte)).count();
        if (MIN_RUN..=MAX_RUN).contains(&run) {
            let text = &bytes[at..at + run];
            let printable = |decoded: &Vec<u8>| {
                !decoded.is_empty()
                    && decoded
                        .iter()
                        .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
            };
            let read = hex(text).filter(printable).or_else(|| base64(text).filter(printable));
            if let Some(read) = read {
                view.map.push((view.bytes.len(), at));
                view.bytes.extend_from_slice(&read);
                view.bytes.push(b'\n');
            }
        }
        at += run.max(1);
    }
    // Positions inside a run are not those of its digits; its beginning is near enough.
    (!view.bytes.is_empty()).then_some(view)
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

/// Backwards, where a known beginning stands backwards.
fn reversed(bytes: &[u8], prefixes: &[&str]) -> Option<View> {
    let has = |prefix: &&str| {
        let back: Vec<u8> = prefix.bytes().rev().collect();
        bytes.windows(back.len()).any(|window| window == back)
    };
    if bytes.len() > MAX_RUN
        || !prefixes.iter().any(|prefix| {
            prefix.contains(['_', '-']) && has(prefix) || *prefix == "AKIA" && has(prefix)
        })
    {
        return None;
    }
    let mut back = bytes.to_vec();
    back.reverse();
    let map = (0..back.len()).map(|at| (at, bytes.len() - 1 - at)).collect();
    Some(View { bytes: back, map, specific_only: true })
}
