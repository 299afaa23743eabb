//! Prompts on the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::{InterruptibleResult, interruptible};
use crate::terminal;

/// In bytes.
const LONGEST_ANSWER: u64 = 1000;

/// Whether a prompt can be shown and answered.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && terminal::stderr_is_terminal()
}

/// Asks a yes/no question. Enter and Ctrl-C mean no.
pub(crate) async fn agreed(question: &str) -> bool {
    let answer = asked(&format!("{question} [y/N] ")).await;
    matches!(answer.as_deref(), Some("y" | "Y" | "yes" | "Yes"))
}

/// Asks a yes/no question where Enter means yes; `None` after Ctrl-C.
pub(crate) async fn agreed_or_left(question: &str) -> Option<bool> {
    let answer = asked(&format!("{question} [Y/n] ")).await?;
    Some(matches!(answer.as_str(), "" | "y" | "Y" | "yes" | "Yes"))
}

/// Asks for a line of text and trims it; `None` after Ctrl-C or at the end of input.
pub(crate) async fn asked(words: &str) -> Option<String> {
    terminal::show(words);
    let answer = line().await;
    if answer.is_none() {
        // Ends the line, because the terminal shows `^C` after the prompt.
        terminal::show("\n");
    }
    answer.map(|answer| answer.trim().to_owned())
}

/// Reads in a detached thread, because a read from a terminal cannot be cancelled.
async fn line() -> Option<String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = io::Read::take(io::stdin().lock(), LONGEST_ANSWER).read_line(&mut answer);
        let _ = tell.send(read.ok().filter(|bytes| *bytes > 0).map(|_| answer));
    });
    match interruptible(told).await {
        InterruptibleResult::Done(told) => told.ok().flatten(),
        InterruptibleResult::Cancelled => None,
    }
}
