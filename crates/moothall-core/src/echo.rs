//! Finds answers that are copied from their prompt: small models return the evidence or the
//! question instead of an answer.

use crate::model::ModelRequest;

/// Shorter lines, such as headings, may occur in both.
const MIN_LINE_CHARS: usize = 40;

/// More lines are not looked up. Each is searched for in a whole text, and both may have megabytes.
const MAX_LINES: usize = 200;

/// Whether most of an answer is copied from its prompt.
pub(crate) fn is_echo(request: &ModelRequest, answer: &str) -> bool {
    // A rewrite may repeat the first version, which later turns contain.
    let asked = request.system.iter().chain(request.turns.first().map(|turn| &turn.block));
    let in_prompt = |line: &str| asked.clone().any(|block| block.text.contains(line));
    is_most(long_lines(answer), in_prompt)
}

/// Whether an answer repeats most of the question. A few lines of it may be what was asked for.
pub(crate) fn repeats_question(request: &ModelRequest, answer: &str) -> bool {
    let question = request.turns.first().map(|turn| &*turn.block.text);
    is_echo(request, answer)
        && question.is_some_and(|text| is_most(long_lines(text), |line| answer.contains(line)))
}

fn long_lines(text: &str) -> impl Iterator<Item = &str> {
    let is_long = |line: &&str| line.chars().count() >= MIN_LINE_CHARS;
    text.lines().map(str::trim).filter(is_long).take(MAX_LINES)
}

fn is_most<'a>(lines: impl Iterator<Item = &'a str>, copied: impl Fn(&str) -> bool) -> bool {
    let copied: Vec<bool> = lines.map(copied).collect();
    copied.iter().filter(|is_copied| **is_copied).count() * 2 > copied.len()
}
