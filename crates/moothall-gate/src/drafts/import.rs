//! Files in a plain answer of a model: fenced blocks that name their file, or a unified diff.
//!
//! Nothing is guessed: a block without a path, a hunk that does not fit or fits in two places, or
//! a fence that never ends is refused with the line it stands in.

use super::path::{PathFault, RelPath};

/// The longest answer that is read.
const MAX_BYTES: usize = 8 << 20;

/// What an answer proposes for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// Which file.
    pub path: RelPath,
    /// What becomes of it.
    pub what: Proposal,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// This is all of it.
    Whole(String),
    /// These parts of it change.
    Hunks(Vec<Hunk>),
    /// It goes.
    Delete,
}

/// Lines that stand together, and what stands there instead. Lines keep their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Where the old lines are said to begin, from 1.
    pub at: usize,
    /// What is there.
    pub old: Vec<String>,
    /// What shall be there.
    pub new: Vec<String>,
}

/// Why an answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportFault {
    /// No file in it.
    #[error("there is no file in it: a fenced block that names its file, or a unified diff")]
    Nothing,
    /// Too much of it.
    #[error("it is longer than 8 MiB")]
    Long,
    /// A block without a name.
    #[error("line {0}: the block does not say which file it is")]
    Unnamed(usize),
    /// A block without an end.
    #[error("line {0}: the block has no end")]
    Unended(usize),
    /// The path is none.
    #[error("line {line}: {fault}")]
    Path {
        /// Where.
        line: usize,
        /// Why.
        fault: PathFault,
    },
    /// One file twice.
    #[error("{0} is there twice")]
    Twice(RelPath),
    /// Not a diff after all.
    #[error("line {0}: the diff cannot be read")]
    Diff(usize),
    /// A part of a diff fits nowhere, or in two places.
    #[error("the part of the diff for line {0} does not fit the file")]
    Fit(usize),
}

/// Reads an answer. `single` is the file of a block that does not name one, if there is only one
/// block.
pub fn read_answer(text: &str, single: Option<&RelPath>) -> Result<Vec<Proposed>, ImportFault> {
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

/// The text after the hunks. Each stands exactly where it says, or in one other place only.
pub fn apply_hunks(text: &str, hunks: &[Hunk]) -> Result<String, ImportFault> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for hunk in hunks {
        let fits = |at: usize| {
            lines.get(at..at + hunk.old.len()).is_some_and(|there| {
                there.iter().zip(&hunk.old).all(|(one, other)| same_line(one, other))
            })
        };
        let said = hunk.at.saturating_sub(usize::from(!hunk.old.is_empty()));
        let at = if said >= from && fits(said) && said <= lines.len() {
            said
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

/// A last line may come without its end.
fn same_line(one: &str, other: &str) -> bool {
    one.trim_end_matches(['\n', '\r']) == other.trim_end_matches(['\n', '\r'])
}

fn is_hunk_head(line: &str) -> bool {
    hunk_head(line).is_some()
}

/// `@@ -12,3 +12,4 @@` as the old line and both counts.
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

fn diff(lines: &[&str]) -> Result<Vec<Proposed>, ImportFault> {
    let mut found: Vec<Proposed> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let next = lines.get(at + 1).copied().unwrap_or("");
        let (Some(old), Some(new)) = (lines[at].strip_prefix("--- "), next.strip_prefix("+++ "))
        else {
            if is_hunk_head(lines[at]) {
                return Err(ImportFault::Diff(at + 1));
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
            return Err(ImportFault::Diff(at));
        }
        let what = if gone { Proposal::Delete } else { Proposal::Hunks(hunks) };
        found.push(Proposed { path, what });
    }
    Ok(found)
}

fn hunk(
    lines: &[&str],
    mut at: usize,
    line: usize,
    old_count: usize,
    new_count: usize,
) -> Result<(Hunk, usize), ImportFault> {
    let mut hunk = Hunk { at: line, old: Vec::new(), new: Vec::new() };
    while hunk.old.len() < old_count || hunk.new.len() < new_count {
        let text = lines.get(at).ok_or(ImportFault::Diff(at))?;
        let (mark, rest) = text.split_at_checked(1).ok_or(ImportFault::Diff(at + 1))?;
        match mark {
            "-" => hunk.old.push(rest.to_owned()),
            "+" => hunk.new.push(rest.to_owned()),
            " " => {
                hunk.old.push(rest.to_owned());
                hunk.new.push(rest.to_owned());
            }
            // Editors trim the blank of an empty context line.
            "\n" => {
                hunk.old.push(text.to_string());
                hunk.new.push(text.to_string());
            }
            "\\" => without_end(&mut hunk, lines.get(at.wrapping_sub(1)).copied()),
            _ => return Err(ImportFault::Diff(at + 1)),
        }
        at += 1;
        if hunk.old.len() > old_count || hunk.new.len() > new_count {
            return Err(ImportFault::Diff(at));
        }
    }
    if lines.get(at).is_some_and(|line| line.starts_with("\\ ")) {
        without_end(&mut hunk, lines.get(at - 1).copied());
        at += 1;
    }
    Ok((hunk, at))
}

/// `\ No newline at end of file` is about the line before it.
fn without_end(hunk: &mut Hunk, before: Option<&str>) {
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
    // A time may follow a tab; `a/` and `b/` are how git says old and new.
    let text = text.split('\t').next().unwrap_or("").trim();
    let text = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/")).unwrap_or(text);
    RelPath::parse(text).map_err(|fault| ImportFault::Path { line, fault })
}

fn blocks(lines: &[&str], single: Option<&RelPath>) -> Result<Vec<Proposed>, ImportFault> {
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
        Ok(Proposed { path, what: Proposal::Whole(body) })
    };
    found.into_iter().map(proposed).collect()
}

/// The file that a line names: a word with a dot or a slash in it, such as `src/a.py`.
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
