//! The texts of the tour, and the changes that it makes to copies of its files. Pure.

use std::fmt::Write as _;

use moothall_core::sandbox::IsolationClass;

use super::{StepTally, TourStep};
use crate::error::CliError;
use crate::terminal::{BOLD, DIM, GREEN, wrap};

pub(crate) fn introduction(path: &str, is_kept: bool) -> String {
    let files = match is_kept {
        true => format!("Files: {path}"),
        false => format!("Files: {path} (removed at the end; --keep keeps them)"),
    };
    format!(
        "This tour runs real commands and shows each one. It needs no API key and no network: \
         HLXI is a fictional company with built-in filings, and `demo` is a scripted model.\n{files}"
    )
}

/// Title and explanation of a step.
pub(crate) fn step(step: TourStep) -> (&'static str, &'static str) {
    match step {
        TourStep::Consult => (
            "Get a second opinion",
            "Five analysts propose strategic moves. A critic attacks each move, and three decision \
             makers defend it. A panel that does not know who said what scores the moves, and code \
             sorts them into tiers. The best moves are debated again.",
        ),
        TourStep::Memo => (
            "Read the memo",
            "The result is a memo as Markdown, HTML or PDF. Models wrote the text; code checked \
             every number in it.",
        ),
        TourStep::Check => (
            "Catch a changed number",
            "Someone edits one number in a copy of the memo. `check` compares every number with \
             the filings, without a model.",
        ),
        TourStep::Sandbox => (
            "Run a program in a sandbox",
            "A program that a model wrote is untrusted. It runs without network and privileges in \
             a single-use sandbox. This one also tries to break out.",
        ),
        TourStep::Drafts => (
            "Stop a bad edit",
            "Agents change drafts, not files. Here an agent drops code that it should keep and \
             adds a credential. The gate (code, not a model) decides.",
        ),
        TourStep::Receipt => (
            "Verify the receipt",
            "The receipt records every answer of the consultation. `verify` checks it offline and \
             derives the verdict again.",
        ),
    }
}

pub(crate) fn ending(tally: StepTally, path: &str, is_kept: bool, columns: usize) -> String {
    let StepTally { done, skipped } = tally;
    let mut text = match skipped {
        0 => format!("\n{GREEN}Done: {done} of {} steps.{GREEN:#}", TourStep::ALL.len()),
        _ => format!(
            "\n{GREEN}Done: {done} of {} steps, {skipped} skipped.{GREEN:#}",
            TourStep::ALL.len()
        ),
    };
    let files = match is_kept {
        true => format!("Files: {path}"),
        false => format!("{path} is removed."),
    };
    let _ = writeln!(text, "\n{}\n\n{BOLD}Next{BOLD:#}", wrap(&files, columns).join("\n"));
    for (command, about) in [
        ("moothall init", "choose a model"),
        ("moothall consult AAPL --estimate", "what a real consultation costs"),
        ("moothall check memo.md --facts AAPL", "check your own text"),
        ("moothall mcp", "give an agent draft tools"),
        ("moothall serve --open", "use the web UI"),
    ] {
        let _ = match columns < 70 {
            true => writeln!(text, "  {command}\n    {DIM}{about}{DIM:#}"),
            false => writeln!(text, "  {command:<37}{DIM}{about}{DIM:#}"),
        };
    }
    text
}

/// Why no program was run.
pub(crate) fn no_sandbox(error: &CliError) -> String {
    let why = error.full_message();
    let why = why.strip_prefix("the program was not run: ").unwrap_or(&why);
    let hint =
        error.hint.as_ref().map_or_else(String::new, |hint| format!(". To change this: {hint}"));
    format!("no usable sandbox on this machine, so the program does not run ({why}){hint}")
}

pub(crate) fn isolation(class: IsolationClass) -> String {
    let meaning = match class {
        IsolationClass::HardwareVm => "a virtual machine on KVM",
        IsolationClass::UserKernel => "gVisor, a kernel in user space",
        IsolationClass::EmulatedVm => {
            "a virtual machine on an emulated CPU, because KVM is not usable here"
        }
        IsolationClass::SharedKernel => {
            "a container that shares this machine's kernel, which your settings allow; the weakest class"
        }
        IsolationClass::None => "no isolation",
    };
    format!("isolation class {class}: {meaning}; the attempts were refused")
}

/// A space between words of one line.
const KEPT_SPACE: char = '\u{a0}';

/// A command line; a long one is continued with `\`.
pub(crate) fn wrap_command(arguments: &[&str], columns: usize) -> String {
    let mut line = "moothall".to_owned();
    let mut after_flag = false;
    for argument in arguments {
        let is_flag = argument.starts_with("--");
        // A flag and its value stay together.
        line.push(if after_flag && !is_flag { KEPT_SPACE } else { ' ' });
        line.push_str(argument);
        after_flag = is_flag;
    }
    let lines = wrap(&line, columns.saturating_sub(6)).join(" \\\n    ");
    lines.replace(KEPT_SPACE, " ")
}

/// The first recommended move: its text and its evidence.
pub(crate) fn memo_excerpt(memo: &str, columns: usize) -> String {
    let is_move =
        |line: &str| line.starts_with("## ") && line.ends_with(')') && line.contains(" (m");
    let lines = memo.lines().skip_while(|line| !is_move(line));
    let lines = lines.take_while(|line| !line.starts_with("### Strongest objection"));
    let mut shown = Vec::new();
    for line in lines {
        match line.starts_with('|') {
            true => shown.push(line.chars().take(columns).collect()),
            false => shown.extend(wrap(line, columns)),
        }
        if line.is_empty() {
            shown.push(String::new());
        }
    }
    shown.dedup();
    shown.push("… the whole memo is in memo.md and memo.html".to_owned());
    shown.join("\n")
}

/// A memo with one other number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChangedNumber {
    pub(crate) text: String,
    /// The sentence with the number.
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Changes the first dollar amount that a citation of the fact sheet follows in its sentence.
pub(crate) fn changed_number(memo: &str) -> Option<ChangedNumber> {
    let line = memo.lines().find(|line| {
        line.find('$').is_some_and(|at| !line.starts_with('|') && line[at..].contains(" [F0:"))
    })?;
    let at = line.find('$')?.saturating_add(1);
    let (head, number) = line.split_at_checked(at)?;
    let changed = format!("{head}{}", other_number(number)?);
    let start = head.rfind(". ").map_or(0, |end| end + 2);
    let sentence = |line: &str| {
        let rest = line.get(start..).unwrap_or(line);
        rest.find("].").map_or(rest, |end| rest.get(..end + 2).unwrap_or(rest)).to_owned()
    };
    let (before, after) = (sentence(line), sentence(&changed));
    Some(ChangedNumber { text: memo.replacen(line, &changed, 1), before, after })
}

/// Raises the first score in the conclusion of a receipt.
pub(crate) fn changed_score(receipt: &str) -> Option<String> {
    let mark = "\"total_score\":";
    let conclusion = receipt.find("\"conclusion\":\"ranked\"")?;
    let at = conclusion + receipt.get(conclusion..)?.find(mark)? + mark.len();
    let (head, number) = receipt.split_at_checked(at)?;
    Some(format!("{head}{}", other_number(number)?))
}

/// Changes the first digit of the text that starts with a number.
fn other_number(text: &str) -> Option<String> {
    let first = text.chars().next()?.to_digit(10)?;
    let other = if first == 9 { 1 } else { first + 1 };
    Some(format!("{other}{}", text.get(1..)?))
}

#[cfg(test)]
#[path = "tour_text_tests.rs"]
mod tests;
