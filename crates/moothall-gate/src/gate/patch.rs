//! Reads patches in git's format, strictly.
//!
//! A patch is untrusted, and the program that applies it later may read it differently. So nothing
//! is guessed or repaired: every line of a file's section must have its place, numbers must be
//! right, paths must agree, and text between sections must not look like a part of a diff. Hunks
//! apply at exactly their line.

use std::collections::BTreeSet;

use super::change_set::EntryKind;

/// Larger patches are refused.
pub const MAX_PATCH_BYTES: usize = 64 << 20;
const MAX_FILES: usize = 10_000;

/// Why a patch cannot be read or applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct PatchFault {
    /// Line in the patch, from 1.
    pub line: usize,
    /// What is wrong.
    pub kind: PatchFaultKind,
}

/// What is wrong with a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatchFaultKind {
    /// Above [`MAX_PATCH_BYTES`].
    #[error("the patch is larger than 64 MiB")]
    Size,
    /// Too many sections.
    #[error("the patch changes more than 10,000 files")]
    Files,
    /// A part of a diff without a `diff --git` line.
    #[error("a diff must start with `diff --git`")]
    Stray,
    /// A header line is unknown, repeated or contradicts another one.
    #[error("unknown or contradictory header")]
    Header,
    /// A path is badly quoted, empty, or differs between headers.
    #[error("the path is invalid or differs from another header")]
    Path,
    /// A mode that git does not use.
    #[error("unknown file mode")]
    Mode,
    /// A hunk's numbers or lines are wrong.
    #[error("invalid hunk")]
    Hunk,
    /// Binary data is malformed.
    #[error("invalid binary data")]
    Binary,
    /// A path has two sections.
    #[error("the patch changes a file twice")]
    Twice,
    /// The patch does not fit the base.
    #[error("the patch does not apply to the base")]
    Fit,
}

/// A file's section of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFile {
    /// `None` for a new file.
    pub old_path: Option<Vec<u8>>,
    /// `None` for a deleted file.
    pub new_path: Option<Vec<u8>>,
    /// The mode after the change, if the patch says it.
    pub new_mode: Option<u32>,
    /// The change of the content.
    pub body: PatchBody,
    /// Line of the section, from 1.
    pub line: usize,
}

/// How the content of a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchBody {
    /// Text changes; none for a pure rename or a change of mode.
    Hunks(Vec<PatchHunk>),
    /// Binary data that is not decoded.
    Binary,
}

/// Consecutive old lines and their replacement. Lines include their line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchHunk {
    /// First old line, from 1; 0 for an empty file.
    old_start: usize,
    old: Vec<Vec<u8>>,
    new: Vec<Vec<u8>>,
    line: usize,
}

impl PatchFile {
    /// The content after the change of a file with this content. `None` is a missing file.
    pub fn apply(&self, base: Option<&[u8]>) -> Result<Vec<u8>, PatchFault> {
        let fault = |line| PatchFault { line, kind: PatchFaultKind::Fit };
        if base.is_some() != self.old_path.is_some() {
            return Err(fault(self.line));
        }
        let PatchBody::Hunks(hunks) = &self.body else { return Err(fault(self.line)) };
        let lines: Vec<&[u8]> = split_lines(base.unwrap_or_default()).collect();
        let (mut result, mut at) = (Vec::new(), 0);
        for hunk in hunks {
            // A hunk without old lines names the line before it.
            let start = match hunk.old.is_empty() {
                true => hunk.old_start,
                false => hunk.old_start.checked_sub(1).ok_or_else(|| fault(hunk.line))?,
            };
            let end = start.checked_add(hunk.old.len()).ok_or_else(|| fault(hunk.line))?;
            let kept = lines.get(at..start).ok_or_else(|| fault(hunk.line))?;
            let replaced = lines.get(start..end).ok_or_else(|| fault(hunk.line))?;
            if !replaced.iter().zip(&hunk.old).all(|(line, old)| *line == old.as_slice()) {
                return Err(fault(hunk.line));
            }
            kept.iter().for_each(|line| result.extend_from_slice(line));
            hunk.new.iter().for_each(|line| result.extend_from_slice(line));
            at = end;
        }
        let rest = lines.get(at..).unwrap_or_default();
        rest.iter().for_each(|line| result.extend_from_slice(line));
        match self.new_path.is_none() && !result.is_empty() {
            true => Err(fault(self.line)),
            false => Ok(result),
        }
    }
}

fn split_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

/// Reads all sections of a patch.
pub fn read_patch(bytes: &[u8]) -> Result<Vec<PatchFile>, PatchFault> {
    let start = |kind| PatchFault { line: 1, kind };
    if bytes.len() > MAX_PATCH_BYTES {
        return Err(start(PatchFaultKind::Size));
    }
    let mut lines = PatchLines { lines: split_lines(bytes).collect(), at: 0 };
    let mut files: Vec<PatchFile> = Vec::new();
    let mut paths: BTreeSet<Vec<u8>> = BTreeSet::new();
    while let Some(line) = lines.peek() {
        if !line.starts_with(b"diff --git ") {
            if looks_like_diff(line) {
                return Err(lines.fault(PatchFaultKind::Stray));
            }
            lines.at += 1;
            continue;
        }
        let file = read_file(&mut lines)?;
        let at = PatchFault { line: file.line, kind: PatchFaultKind::Twice };
        let named: BTreeSet<&Vec<u8>> = file.old_path.iter().chain(&file.new_path).collect();
        if !named.into_iter().all(|path| paths.insert(path.clone())) {
            return Err(at);
        }
        files.push(file);
        if files.len() > MAX_FILES {
            return Err(PatchFault { kind: PatchFaultKind::Files, ..at });
        }
    }
    Ok(files)
}

/// Whether a line outside of sections could start a diff for another program.
fn looks_like_diff(line: &[u8]) -> bool {
    const STARTS: &[&[u8]] = &[
        b"diff ",
        b"--- ",
        b"+++ ",
        b"@@ ",
        b"*** ",
        b"Index: ",
        b"GIT binary patch",
        b"literal ",
        b"delta ",
        b"rename ",
        b"copy ",
        b"new file mode ",
        b"deleted file mode ",
        b"old mode ",
        b"new mode ",
        b"similarity index ",
        b"Binary files ",
    ];
    // Programs skip indentation and quoting of mails.
    let trimmed = line.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'>' | b'-'));
    let bare = trimmed.map_or(&b""[..], |at| &line[at..]);
    STARTS.iter().any(|start| line.starts_with(start) || bare.starts_with(start))
}

struct PatchLines<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
}

impl<'a> PatchLines<'a> {
    fn peek(&self) -> Option<&'a [u8]> {
        self.lines.get(self.at).copied()
    }

    /// The rest of the next line, if it starts like this.
    fn strip(&mut self, start: &[u8]) -> Option<&'a [u8]> {
        let rest = self.peek()?.strip_prefix(start)?;
        self.at += 1;
        Some(rest.strip_suffix(b"\n").unwrap_or(rest))
    }

    fn fault(&self, kind: PatchFaultKind) -> PatchFault {
        PatchFault { line: self.at + 1, kind }
    }
}

/// The headers of a section. Each may occur once.
#[derive(Default)]
struct SectionHeaders {
    old_mode: Option<u32>,
    new_mode: Option<u32>,
    created: Option<u32>,
    deleted: Option<u32>,
    rename_from: Option<Vec<u8>>,
    rename_to: Option<Vec<u8>>,
    /// The mode behind the hashes, if it did not change.
    index_mode: Option<u32>,
}

fn read_file(lines: &mut PatchLines<'_>) -> Result<PatchFile, PatchFault> {
    let line = lines.at + 1;
    let head = lines.strip(b"diff --git ").unwrap_or_default();
    let headers = read_headers(lines)?;
    let at = |kind| PatchFault { line, kind };
    let contradicts = (headers.created.is_some() && headers.deleted.is_some())
        || headers.old_mode.is_some() != headers.new_mode.is_some()
        || headers.rename_from.is_some() != headers.rename_to.is_some()
        || (headers.rename_from.is_some()
            && (headers.created.is_some() || headers.deleted.is_some()))
        || (headers.new_mode.is_some() && (headers.created.is_some() || headers.deleted.is_some()));
    if contradicts {
        return Err(at(PatchFaultKind::Header));
    }
    let (old, new) = match (&headers.rename_from, &headers.rename_to) {
        (Some(old), Some(new)) => (old.clone(), new.clone()),
        _ => {
            let path = same_path(head).ok_or_else(|| at(PatchFaultKind::Path))?;
            (path.clone(), path)
        }
    };
    if !names_both(head, &old, &new) {
        return Err(at(PatchFaultKind::Path));
    }
    let old_path = headers.created.is_none().then_some(old);
    let new_path = headers.deleted.is_none().then_some(new);
    let body = read_body(lines, old_path.as_deref(), new_path.as_deref())?;
    let new_mode = headers.created.or(headers.new_mode).or(headers.index_mode);
    Ok(PatchFile { old_path, new_path, new_mode, body, line })
}

fn read_headers(lines: &mut PatchLines<'_>) -> Result<SectionHeaders, PatchFault> {
    let mut headers = SectionHeaders::default();
    let (mut has_index, mut has_similarity) = (false, false);
    loop {
        let again = lines.fault(PatchFaultKind::Header);
        let set = |slot: &mut Option<u32>, text: &[u8]| {
            let mode = mode_of(text).ok_or(PatchFault { kind: PatchFaultKind::Mode, ..again })?;
            if slot.replace(mode).is_some() { Err(again) } else { Ok(()) }
        };
        let path = |slot: &mut Option<Vec<u8>>, text: &[u8]| {
            let fault = PatchFault { kind: PatchFaultKind::Path, ..again };
            let path = whole_path(text).ok_or(fault)?;
            if slot.replace(path).is_some() { Err(again) } else { Ok(()) }
        };
        if let Some(text) = lines.strip(b"old mode ") {
            set(&mut headers.old_mode, text)?;
        } else if let Some(text) = lines.strip(b"new mode ") {
            set(&mut headers.new_mode, text)?;
        } else if let Some(text) = lines.strip(b"new file mode ") {
            set(&mut headers.created, text)?;
        } else if let Some(text) = lines.strip(b"deleted file mode ") {
            set(&mut headers.deleted, text)?;
        } else if let Some(text) = lines.strip(b"rename from ") {
            path(&mut headers.rename_from, text)?;
        } else if let Some(text) = lines.strip(b"rename to ") {
            path(&mut headers.rename_to, text)?;
        } else if let Some(text) =
            lines.strip(b"similarity index ").or_else(|| lines.strip(b"dissimilarity index "))
        {
            let percent = text.strip_suffix(b"%").and_then(number);
            if percent.is_none_or(|percent| percent > 100) || has_similarity {
                return Err(again);
            }
            has_similarity = true;
        } else if let Some(text) = lines.strip(b"index ") {
            if has_index {
                return Err(again);
            }
            has_index = true;
            let (hashes, mode) = match text.iter().position(|byte| *byte == b' ') {
                Some(space) => (&text[..space], Some(&text[space + 1..])),
                None => (text, None),
            };
            let is_hash = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'.';
            if !hashes.iter().all(is_hash) || !hashes.windows(2).any(|pair| pair == b"..") {
                return Err(again);
            }
            if let Some(mode) = mode {
                set(&mut headers.index_mode, mode)?;
            }
        } else {
            return Ok(headers);
        }
    }
}

fn read_body(
    lines: &mut PatchLines<'_>,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<PatchBody, PatchFault> {
    if lines.strip(b"GIT binary patch\n").is_some() {
        read_binary(lines)?;
        return Ok(PatchBody::Binary);
    }
    if lines.peek().is_some_and(|line| line.starts_with(b"Binary files ")) {
        lines.at += 1;
        return Ok(PatchBody::Binary);
    }
    let Some(text) = lines.strip(b"--- ") else { return Ok(PatchBody::Hunks(Vec::new())) };
    let fault = PatchFault { line: lines.at, kind: PatchFaultKind::Path };
    if !names_side(text, b"a/", old) {
        return Err(fault);
    }
    let fault = lines.fault(PatchFaultKind::Path);
    let text = lines.strip(b"+++ ").ok_or(fault)?;
    if !names_side(text, b"b/", new) {
        return Err(fault);
    }
    let mut hunks = Vec::new();
    while lines.peek().is_some_and(|line| line.starts_with(b"@@")) {
        hunks.push(read_hunk(lines)?);
    }
    match hunks.is_empty() {
        true => Err(lines.fault(PatchFaultKind::Hunk)),
        false => Ok(PatchBody::Hunks(hunks)),
    }
}

fn read_hunk(lines: &mut PatchLines<'_>) -> Result<PatchHunk, PatchFault> {
    let line = lines.at + 1;
    let fault = lines.fault(PatchFaultKind::Hunk);
    let text = lines.strip(b"@@ -").ok_or(fault)?;
    let end = text.windows(3).position(|part| part == b" @@").ok_or(fault)?;
    let space = text[..end].windows(2).position(|part| part == b" +").ok_or(fault)?;
    let (old_start, mut old_left) = span(&text[..space]).ok_or(fault)?;
    let (_, mut new_left) = span(&text[space + 2..end]).ok_or(fault)?;
    let mut hunk = PatchHunk { old_start, old: Vec::new(), new: Vec::new(), line };
    while old_left > 0 || new_left > 0 {
        let fault = lines.fault(PatchFaultKind::Hunk);
        let line = lines.peek().ok_or(fault)?;
        let (sign, content) = line.split_first().ok_or(fault)?;
        if !content.ends_with(b"\n") {
            return Err(fault);
        }
        lines.at += 1;
        let is_cut = lines.peek().is_some_and(|next| next.starts_with(b"\\ "));
        let content = match is_cut {
            true => {
                lines.at += 1;
                &content[..content.len() - 1]
            }
            false => content,
        };
        let (in_old, in_new) = match sign {
            b' ' => (true, true),
            b'-' => (true, false),
            b'+' => (false, true),
            _ => return Err(fault),
        };
        for (is_in, left, side) in
            [(in_old, &mut old_left, &mut hunk.old), (in_new, &mut new_left, &mut hunk.new)]
        {
            if is_in {
                *left = left.checked_sub(1).ok_or(fault)?;
                // A line without a line end is the last one of its side.
                if side.last().is_some_and(|last: &Vec<u8>| !last.ends_with(b"\n")) {
                    return Err(fault);
                }
                side.push(content.to_vec());
            }
        }
    }
    // More lines than the header announced would be read as text between sections.
    let more = lines.peek().is_some_and(|line| matches!(line.first(), Some(b'+' | b' ' | b'\\')));
    let is_removal = lines.peek().is_some_and(|line| line.starts_with(b"-") && line != b"-- \n");
    if more || is_removal {
        return Err(lines.fault(PatchFaultKind::Hunk));
    }
    Ok(hunk)
}

/// One or two blocks of base85 lines, each followed by an empty line.
fn read_binary(lines: &mut PatchLines<'_>) -> Result<(), PatchFault> {
    let mut blocks = 0;
    while let Some(size) = lines.strip(b"literal ").or_else(|| lines.strip(b"delta ")) {
        let fault = lines.fault(PatchFaultKind::Binary);
        number(size).ok_or(fault)?;
        loop {
            let fault = lines.fault(PatchFaultKind::Binary);
            let line = lines.peek().and_then(|line| line.strip_suffix(b"\n")).ok_or(fault)?;
            lines.at += 1;
            let Some((length, data)) = line.split_first() else { break };
            let is_data = length.is_ascii_alphabetic()
                && !data.is_empty()
                && data.len().is_multiple_of(5)
                && data.iter().all(|byte| byte.is_ascii_graphic());
            if !is_data {
                return Err(fault);
            }
        }
        blocks += 1;
    }
    match blocks {
        1 | 2 => Ok(()),
        _ => Err(lines.fault(PatchFaultKind::Binary)),
    }
}

/// `START` or `START,COUNT`.
fn span(text: &[u8]) -> Option<(usize, usize)> {
    match text.iter().position(|byte| *byte == b',') {
        Some(comma) => Some((number(&text[..comma])?, number(&text[comma + 1..])?)),
        None => Some((number(text)?, 1)),
    }
}

fn number(text: &[u8]) -> Option<usize> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

fn mode_of(text: &[u8]) -> Option<u32> {
    let mode = u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()?;
    (text.len() == 6 && EntryKind::of_git_mode(mode) != EntryKind::Other).then_some(mode)
}

/// A path that is a whole line, perhaps quoted.
fn whole_path(text: &[u8]) -> Option<Vec<u8>> {
    let path = match text.first()? {
        b'"' => unquoted(text).filter(|(_, rest)| rest.is_empty())?.0,
        _ => text.to_vec(),
    };
    (!path.is_empty() && !path.contains(&0)).then_some(path)
}

/// The path of a `diff --git` line whose two paths are the same.
fn same_path(head: &[u8]) -> Option<Vec<u8>> {
    let path = if head.starts_with(b"\"") {
        unquoted(head)?.0.strip_prefix(b"a/")?.to_vec()
    } else {
        // `a/PATH b/PATH`
        let half = head.len().checked_sub(1)? / 2;
        head.get(..half)?.strip_prefix(b"a/")?.to_vec()
    };
    (!path.is_empty() && !path.contains(&0)).then_some(path)
}

/// Whether a `diff --git` line has exactly these paths.
fn names_both(head: &[u8], old: &[u8], new: &[u8]) -> bool {
    let (old, new) = ([b"a/", old].concat(), [b"b/", new].concat());
    let rest = match head.first() {
        Some(b'"') => match unquoted(head) {
            Some((path, rest)) if path == old => rest,
            _ => return false,
        },
        _ => match head.strip_prefix(old.as_slice()) {
            Some(rest) => rest,
            None => return false,
        },
    };
    let Some(rest) = rest.strip_prefix(b" ") else { return false };
    match rest.first() {
        Some(b'"') => unquoted(rest).is_some_and(|(path, end)| path == new && end.is_empty()),
        _ => rest == new.as_slice(),
    }
}

/// Whether a `---` or `+++` line has this path.
fn names_side(text: &[u8], prefix: &[u8], path: Option<&[u8]>) -> bool {
    let Some(path) = path else { return text == b"/dev/null" };
    // Git ends names with spaces by a tab.
    let text = text.strip_suffix(b"\t").unwrap_or(text);
    let expected = [prefix, path].concat();
    match text.first() {
        Some(b'"') => unquoted(text).is_some_and(|(path, end)| path == expected && end.is_empty()),
        _ => text == expected.as_slice(),
    }
}

/// The content of a quoted string at the start of a text, and what follows.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut path = Vec::new();
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => return Some((path, rest)),
            b'\\' => {
                let (escape, after) = rest.split_first()?;
                rest = after;
                path.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    b'0'..=b'3' => {
                        let (digits, after) = rest.split_at_checked(2)?;
                        rest = after;
                        let octal = |byte: &u8| (b'0'..=b'7').contains(byte);
                        let &[second, third] = digits else { return None };
                        if !digits.iter().all(octal) {
                            return None;
                        }
                        (escape - b'0') * 64 + (second - b'0') * 8 + (third - b'0')
                    }
                    _ => return None,
                });
            }
            other => path.push(*other),
        }
    }
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
