//! Finds fenced code blocks in model output.
//!
//! Hand-written because unfinished and invalid Markdown must work too: a small model that omits the
//! closing fence has still written its program, and a Markdown parser would not report the missing
//! fence.

/// One fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedBlock<'a> {
    /// The first word after the opening fence, such as `python`; may be empty.
    pub language: &'a str,
    /// The lines between the fences, including line endings.
    pub text: &'a str,
    /// Whether there is a closing fence.
    pub closed: bool,
}

/// Returns all fenced blocks in order. A fence is a line that starts, after at most three spaces,
/// with three or more backticks or tildes; the closing fence is at least as long, with nothing
/// after it.
pub fn fenced_blocks(text: &str) -> Vec<FencedBlock<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<OpenFence<'_>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        match &open {
            None => {
                open = fence(line)
                    // An info string with a backtick is inline code, not a fence.
                    .filter(|(kind, _, rest)| *kind != '`' || !rest.contains('`'))
                    .map(|(kind, length, rest)| OpenFence {
                        kind,
                        length,
                        language: first_word(rest),
                        start: next,
                    });
            }
            Some(opening) => {
                if fence(line).is_some_and(|(kind, length, rest)| {
                    kind == opening.kind && length >= opening.length && rest.is_empty()
                }) {
                    blocks.push(FencedBlock {
                        language: opening.language,
                        text: &text[opening.start..at],
                        closed: true,
                    });
                    open = None;
                }
            }
        }
        at = next;
    }
    if let Some(opening) = open {
        blocks.push(FencedBlock {
            language: opening.language,
            text: &text[opening.start..],
            closed: false,
        });
    }
    blocks
}

struct OpenFence<'a> {
    kind: char,
    length: usize,
    language: &'a str,
    start: usize,
}

/// The fence character, its count and the trimmed rest of the line.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let body = line.trim_start_matches(' ');
    let kind = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = body.trim_start_matches(kind);
    let (indent, length) = (line.len() - body.len(), body.len() - rest.len());
    (indent <= 3 && length >= 3).then(|| (kind, length, rest.trim()))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("")
}

#[cfg(test)]
#[path = "fenced_tests.rs"]
mod tests;
