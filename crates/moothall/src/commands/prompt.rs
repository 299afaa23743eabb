//! Prompts on the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::{InterruptibleResult, interruptible};
use crate::terminal;

/// In bytes.
const MAX_ANSWER_BYTES: u64 = 1000;

/// Whether a prompt can be shown and answered.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && terminal::stderr_is_terminal()
}

/// Asks a yes/no question. Enter and Ctrl-C mean no.
pub(crate) async fn confirm(question: &str) -> bool {
    let answer = ask_line(&format!("{question} [y/N] ")).await;
    matches!(answer.as_deref(), Some("y" | "Y" | "yes" | "Yes"))
}

/// Asks a yes/no question where Enter means yes; `None` after Ctrl-C.
pub(crate) async fn confirm_default_yes(question: &str) -> Option<bool> {
    let answer = ask_line(&format!("{question} [Y/n] ")).await?;
    Some(matches!(answer.as_str(), "" | "y" | "Y" | "yes" | "Yes"))
}

/// Asks for a line of text and trims it; `None` after Ctrl-C or at the end of input.
pub(crate) async fn ask_line(prompt: &str) -> Option<String> {
    terminal::show(prompt);
    let answer = line().await;
    if answer.is_none() {
        // Ends the line, because the terminal shows `^C` after the prompt.
        terminal::show("\n");
    }
    answer.map(|answer| answer.trim().to_owned())
}

/// Reads in a detached thread, because a read from a terminal cannot be cancelled.
async fn line() -> Option<String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = io::Read::take(io::stdin().lock(), MAX_ANSWER_BYTES).read_line(&mut answer);
        let _ = sender.send(read.ok().filter(|bytes| *bytes > 0).map(|_| answer));
    });
    match interruptible(receiver).await {
        InterruptibleResult::Done(answer) => answer.ok().flatten(),
        InterruptibleResult::Cancelled => None,
    }
}
