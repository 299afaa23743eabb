//! Asking the person in front of the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::{Interruptible, interruptible};
use crate::terminal;

/// The longest answer to a question of ours, in bytes.
const LONGEST_ANSWER: u64 = 1000;

/// Whether there is anybody who can be asked.
pub(super) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && terminal::stderr_is_terminal()
}

/// Whether the person says yes. Enter is no, and so is Ctrl-C.
pub(super) async fn agreed(question: &str) -> bool {
    let answer = asked(&format!("{question} [y/N] ")).await;
    matches!(answer.as_deref(), Some("y" | "Y" | "yes" | "Yes"))
}

/// What the person says to a question whose Enter is yes; nothing after Ctrl-C.
pub(super) async fn agreed_or_left(question: &str) -> Option<bool> {
    let answer = asked(&format!("{question} [Y/n] ")).await?;
    Some(matches!(answer.as_str(), "" | "y" | "Y" | "yes" | "Yes"))
}

/// What the person types behind these words, without the space around it; nothing after Ctrl-C or
/// the end of the input.
pub(super) async fn asked(words: &str) -> Option<String> {
    terminal::note(words);
    let answer = line().await;
    if answer.is_none() {
        // The terminal shows `^C` behind the question.
        terminal::note("\n");
    }
    answer.map(|answer| answer.trim().to_owned())
}

/// In a thread that nobody waits for, because reading from a terminal cannot be stopped.
async fn line() -> Option<String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = io::Read::take(io::stdin().lock(), LONGEST_ANSWER).read_line(&mut answer);
        let _ = tell.send(read.ok().filter(|bytes| *bytes > 0).map(|_| answer));
    });
    match interruptible(told).await {
        Interruptible::Done(told) => told.ok().flatten(),
        Interruptible::Cancelled => None,
    }
}
