//! Extracts files from a model's plain-text reply: fenced blocks that name their file, or a unified
//! diff.
//!
//! Nothing is guessed. A block without a path, an unclosed fence, and a hunk that matches nowhere
//! or in two places are errors with a line number.

use super::path::{PathFault, RelPath};

/// Longer replies are refused.
const MAX_BYTES: usize = 8 << 20;

/// A proposed change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedFile {
    /// The file.
    pub path: RelPath,
    /// The change.
    pub what: FileProposal,
}

/// How a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProposal {
    /// Replace the whole content.
    Whole(String),
    /// Apply these hunks.
    Hunks(Vec<DiffHunk>),
    /// Delete the file.
    Delete,
}

/// Consecutive lines and their replacement. Lines keep their line endings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunk {
    /// First old line according to the hunk header, from 1.
    pub at: usize,
    /// The old lines.
    pub old: Vec<String>,
    /// The new lines.
    pub new: Vec<String>,
}

/// Why a reply cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportFault {
    /// The reply contains no file.
    #[error("there is no file in it: a fenced block that names its file, or a unified diff")]
    Nothing,
    /// The reply is too long.
    #[error("it is longer than 8 MiB")]
    Long,
    /// A block does not name its file.
    #[error("line {0}: the block does not say which file it is")]
    Unnamed(usize),
    /// A block is not closed.
    #[error("line {0}: the block has no end")]
    Unended(usize),
    /// A path is invalid.
    #[error("line {line}: {fault}")]
    Path {
        /// Line in the reply, from 1.
        line: usize,
        /// What is wrong with the path.
        fault: PathFault,
    },
    /// A file appears twice.
    #[error("{0} is there twice")]
    Twice(RelPath),
    /// The diff is invalid. The text is part of requests to models that stored runs replay, so it
    /// must not change; [`ImportFault::message`] names the reason.
    #[error("line {line}: the diff cannot be read")]
    Diff {
        /// Line in the reply, from 1.
        line: usize,
        /// What is wrong with the diff.
        fault: DiffFault,
    },
    /// A hunk matches nowhere, or in two places.
    #[error("the part of the diff for line {0} does not fit the file")]
    Fit(usize),
}

impl ImportFault {
    /// The message for people. It differs from the text for models only for an invalid diff.
    pub fn message(&self) -> String {
        match self {
            Self::Diff { line, fault } => format!("line {line}: {fault}"),
            other => other.to_string(),
        }
    }
}

/// What is wrong with a unified diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiffFault {
    /// A hunk does not say which file it changes.
    #[error("the hunk has no `---` and `+++` lines before it")]
    NoFile,
    /// No hunk follows the names of the file.
    #[error("expected a hunk such as `@@ -1,3 +1,4 @@`")]
    NoHunk,
    /// A hunk is longer or shorter than its header says.
    #[error("the line counts of the hunk do not match its header")]
    LineCounts,
    /// A line of a hunk starts with another character.
    #[error("a line of a hunk must start with a space, `+`, `-` or `\\`")]
    LineMark,
}

/// Parses a reply. `single` is the path of an unnamed block, used only if it is the only block.
pub fn read_answer(text: &str, single: Option<&RelPath>) -> Result<Vec<ProposedFile>, ImportFault> {
    if text.len() > MAX_BYTES {
        return Err(ImportFault::Long);
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let found = match lines.iter().any(|line| is_hunk_head(line)) {
        true => diff(&lines)?,
        false => blocks(&lines, single)?,
    };
    if found.is_empty() {
        return Err(ImportFault::Nothing);
    }
    for (at, one) in found.iter().enumerate() {
        if found[..at].iter().any(|other| other.path == one.path) {
            return Err(ImportFault::Twice(one.path.clone()));
        }
    }
    Ok(found)
}

/// Applies hunks to a text. Each must match at its stated line, otherwise at exactly one other place.
pub fn apply_hunks(text: &str, hunks: &[DiffHunk]) -> Result<String, ImportFault> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for hunk in hunks {
        let fits = |at: usize| {
            lines.get(at..at + hunk.old.len()).is_some_and(|there| {
                there.iter().zip(&hunk.old).all(|(one, other)| same_line(one, other))
            })
        };
        let expected_at = hunk.at.saturating_sub(usize::from(!hunk.old.is_empty()));
        let at = if expected_at >= from && fits(expected_at) && expected_at <= lines.len() {
            expected_at
        } else {
            let mut places = (from..=lines.len()).filter(|at| !hunk.old.is_empty() && fits(*at));
            match (places.next(), places.next()) {
                (Some(at), None) => at,
                _ => return Err(ImportFault::Fit(hunk.at)),
            }
        };
        out.extend(lines[from..at].iter().copied());
        out.extend(hunk.new.iter().map(String::as_str));
        from = at + hunk.old.len();
    }
    out.extend(lines[from.min(lines.len())..].iter().copied());
    Ok(out)
}

/// Ignores line endings: the last line may lack one.
fn same_line(one: &str, other: &str) -> bool {
    one.trim_end_matches(['\n', '\r']) == other.trim_end_matches(['\n', '\r'])
}

fn is_hunk_head(line: &str) -> bool {
    hunk_head(line).is_some()
}

/// Parses `@@ -12,3 +12,4 @@` into the old line and both counts.
fn hunk_head(line: &str) -> Option<(usize, usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (at, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((at.parse().ok()?, count.parse().ok()?))
    };
    let ((at, old), (_, new)) = (range(old)?, range(new)?);
    Some((at, old, new))
}

fn diff(lines: &[&str]) -> Result<Vec<ProposedFile>, ImportFault> {
    let mut found: Vec<ProposedFile> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let next = lines.get(at + 1).copied().unwrap_or("");
        let (Some(old), Some(new)) = (lines[at].strip_prefix("--- "), next.strip_prefix("+++ "))
        else {
            if is_hunk_head(lines[at]) {
                return Err(ImportFault::Diff { line: at + 1, fault: DiffFault::NoFile });
            }
            at += 1;
            continue;
        };
        let name = if new.trim() == "/dev/null" { old } else { new };
        let path = path_of(name, at + 1)?;
        let gone = new.trim() == "/dev/null";
        at += 2;
        let mut hunks = Vec::new();
        while let Some((line, old, new)) = lines.get(at).and_then(|line| hunk_head(line)) {
            let (hunk, after) = hunk(lines, at + 1, line, old, new)?;
            hunks.push(hunk);
            at = after;
        }
        if hunks.is_empty() {
            return Err(ImportFault::Diff { line: at, fault: DiffFault::NoHunk });
        }
        let what = if gone { FileProposal::Delete } else { FileProposal::Hunks(hunks) };
        found.push(ProposedFile { path, what });
    }
    Ok(found)
}

fn hunk(
    lines: &[&str],
    mut at: usize,
    line: usize,
    old_count: usize,
    new_count: usize,
) -> Result<(DiffHunk, usize), ImportFault> {
    let fault = |line: usize, fault: DiffFault| ImportFault::Diff { line, fault };
    let mut hunk = DiffHunk { at: line, old: Vec::new(), new: Vec::new() };
    while hunk.old.len() < old_count || hunk.new.len() < new_count {
        let text = lines.get(at).ok_or_else(|| fault(at, DiffFault::LineCounts))?;
        let (mark, rest) =
            text.split_at_checked(1).ok_or_else(|| fault(at + 1, DiffFault::LineMark))?;
        match mark {
            "-" => hunk.old.push(rest.to_owned()),
            "+" => hunk.new.push(rest.to_owned()),
            " " => {
                hunk.old.push(rest.to_owned());
                hunk.new.push(rest.to_owned());
            }
            // Editors strip the space of an empty context line.
            "\n" => {
                hunk.old.push(text.to_string());
                hunk.new.push(text.to_string());
            }
            "\\" => mark_missing_newline(&mut hunk, lines.get(at.wrapping_sub(1)).copied()),
            // The next hunk or the end of the block: this hunk has fewer lines than announced.
            _ if text.starts_with("@@ ") || text.starts_with("```") => {
                return Err(fault(at + 1, DiffFault::LineCounts));
            }
            _ => return Err(fault(at + 1, DiffFault::LineMark)),
        }
        at += 1;
        if hunk.old.len() > old_count || hunk.new.len() > new_count {
            return Err(fault(at, DiffFault::LineCounts));
        }
    }
    if lines.get(at).is_some_and(|line| line.starts_with("\\ ")) {
        mark_missing_newline(&mut hunk, lines.get(at - 1).copied());
        at += 1;
    }
    Ok((hunk, at))
}

/// Handles `\ No newline at end of file`, which refers to the line before it.
fn mark_missing_newline(hunk: &mut DiffHunk, before: Option<&str>) {
    let cut = |line: Option<&mut String>| {
        if let Some(line) = line
            && line.ends_with('\n')
        {
            line.pop();
        }
    };
    match before.and_then(|line| line.chars().next()) {
        Some('-') => cut(hunk.old.last_mut()),
        Some('+') => cut(hunk.new.last_mut()),
        _ => {
            cut(hunk.old.last_mut());
            cut(hunk.new.last_mut());
        }
    }
}

fn path_of(text: &str, line: usize) -> Result<RelPath, ImportFault> {
    // A timestamp may follow a tab. Git prefixes the old and new path with `a/` and `b/`.
    let text = text.split('\t').next().unwrap_or("").trim();
    let text = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/")).unwrap_or(text);
    RelPath::parse(text).map_err(|fault| ImportFault::Path { line, fault })
}

fn blocks(lines: &[&str], single: Option<&RelPath>) -> Result<Vec<ProposedFile>, ImportFault> {
    let mut found: Vec<(usize, Option<RelPath>, String)> = Vec::new();
    let mut at = 0;
    let mut before = "";
    while at < lines.len() {
        let line = lines[at].trim();
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        if ticks < 3 {
            if !line.is_empty() {
                before = line;
            }
            at += 1;
            continue;
        }
        let start = at;
        let fence = &line[..ticks];
        let named = name_in(&line[ticks..]).or_else(|| name_in(before));
        let mut body = String::new();
        at += 1;
        loop {
            let text = lines.get(at).ok_or(ImportFault::Unended(start + 1))?;
            at += 1;
            if text.trim() == fence {
                break;
            }
            body.push_str(text);
        }
        before = "";
        let path = match named {
            Some(name) => Some(path_of(&name, start + 1)?),
            None => None,
        };
        found.push((start + 1, path, body));
    }
    let alone = found.len() == 1;
    let proposed = |(line, path, body): (usize, Option<RelPath>, String)| {
        let path = path.or_else(|| single.filter(|_| alone).cloned());
        let path = path.ok_or(ImportFault::Unnamed(line))?;
        Ok(ProposedFile { path, what: FileProposal::Whole(body) })
    };
    found.into_iter().map(proposed).collect()
}

/// Returns the only word of a line that looks like a path (contains a dot or a slash), such as
/// `src/a.py`.
fn name_in(line: &str) -> Option<String> {
    let words =
        line.split(|c: char| c.is_whitespace() || matches!(c, '`' | '*' | '"' | '=' | '(' | ')'));
    let mut named = words
        .map(|word| word.trim_end_matches([':', ',', '.']))
        .filter(|word| {
            let inner = word.trim_matches(['.', '/']);
            !word.contains("://")
                && (inner.contains('/') || inner.contains('.'))
                && word.chars().any(char::is_alphanumeric)
        })
        .map(str::to_owned);
    match (named.next(), named.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
