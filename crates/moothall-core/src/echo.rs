//! Finds answers that are copied from their prompt: small models return the evidence or the
//! question instead of an answer.

use crate::model::ModelRequest;

/// Shorter lines, such as headings, may occur in both.
const MIN_LINE_CHARS: usize = 40;

/// Lines of an answer that are looked up. Each is searched for in the whole prompt, and both may
/// have megabytes.
const MAX_LINES: usize = 200;

/// Whether most of an answer is copied from its prompt.
pub(crate) fn is_echo(request: &ModelRequest, answer: &str) -> bool {
    // A rewrite may repeat the first version, which later turns contain.
    let asked = request.system.iter().chain(request.turns.first().map(|turn| &turn.block));
    let in_prompt = |line: &str| asked.clone().any(|block| block.text.contains(line));
    let long = |line: &&str| line.chars().count() >= MIN_LINE_CHARS;
    let lines: Vec<&str> = answer.lines().map(str::trim).filter(long).take(MAX_LINES).collect();
    let copied = lines.iter().filter(|line| in_prompt(line)).count();
    copied * 2 > lines.len()
}
