//! Single keys from the terminal, without Enter.

use std::io::{self, Read as _};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::commands::prompt;

/// What a key means during the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TourKey {
    Run,
    Skip,
    Open,
    Quit,
    Other,
}

impl From<u8> for TourKey {
    fn from(byte: u8) -> Self {
        match byte {
            b'\r' | b'\n' | b' ' => Self::Run,
            b's' | b'S' => Self::Skip,
            b'o' | b'O' => Self::Open,
            b'q' | b'Q' => Self::Quit,
            _ => Self::Other,
        }
    }
}

/// The terminal in a mode that delivers keys immediately and does not print them. Ctrl-C remains a
/// signal. Dropping it restores the mode.
#[derive(Debug)]
pub(crate) struct Keyboard {
    keys: UnboundedReceiver<TourKey>,
    before: Termios,
}

impl Keyboard {
    /// `None` without a terminal to ask on.
    pub(crate) fn open() -> Option<Self> {
        if !prompt::is_interactive() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let mut mode = before.clone();
        mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &mode).ok()?;
        let (sender, keys) = unbounded_channel();
        // A detached thread, because a read from a terminal cannot be cancelled.
        std::thread::spawn(move || {
            let mut buffer = [0; 16];
            while let Ok(count @ 1..) = io::stdin().lock().read(&mut buffer) {
                let typed = &buffer[..count];
                // A function key arrives as one sequence.
                let typed = if typed.starts_with(b"\x1b") { &[] } else { typed };
                if typed.iter().any(|byte| sender.send(TourKey::from(*byte)).is_err()) {
                    break;
                }
            }
        });
        Some(Self { keys, before })
    }

    /// `None` at the end of input.
    pub(crate) async fn next(&mut self) -> Option<TourKey> {
        self.keys.recv().await
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
