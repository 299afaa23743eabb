//! Prompts on the terminal.

use std::io::{self, BufRead, IsTerminal as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

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

/// Asks for a secret, which is not shown; `None` after Ctrl-C or Ctrl-D. Reads byte by byte without
/// signals, so that the terminal shows input again whatever the user presses.
pub(crate) fn ask_hidden(prompt: &str) -> io::Result<Option<String>> {
    // Before the prompt, so that nothing typed after it is shown.
    let hidden = HiddenInput::start()?;
    terminal::show(prompt);
    let answer = read_hidden(io::stdin().lock());
    drop(hidden);
    terminal::show("\n");
    answer
}

/// The longest secret. AWS session tokens have about 2 KB.
const MAX_SECRET_BYTES: usize = 64 * 1024;

fn read_hidden(input: impl BufRead) -> io::Result<Option<String>> {
    const CTRL_C: u8 = 0x03;
    const CTRL_D: u8 = 0x04;
    const CTRL_U: u8 = 0x15;
    const BACKSPACE: [u8; 2] = [0x08, 0x7f];
    let mut secret = Vec::new();
    for byte in input.bytes() {
        match byte? {
            b'\r' | b'\n' => break,
            CTRL_C => return Ok(None),
            CTRL_D if secret.is_empty() => return Ok(None),
            CTRL_U => secret.clear(),
            byte if BACKSPACE.contains(&byte) => {
                secret.pop();
            }
            byte if secret.len() < MAX_SECRET_BYTES => secret.push(byte),
            _ => return Err(io::Error::other("the input is too long")),
        }
    }
    String::from_utf8(secret).map(Some).map_err(|_| io::Error::other("the input is not UTF-8"))
}

/// A terminal that shows no input, until it is dropped.
struct HiddenInput(Termios);

impl HiddenInput {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
        Ok(Self(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
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

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
