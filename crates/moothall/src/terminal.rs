//! Writing to the terminal: data to stdout, everything else to stderr, colour only where it is
//! wanted.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use moothall_core::text;

use crate::args::ColorWhen;
use crate::config::Problem;
use crate::error::CliError;

const RED: Style = AnsiColor::Red.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Decides once for the whole process. `auto` follows the terminal, NO_COLOR and CLICOLOR_FORCE.
pub(crate) fn set_color(when: ColorWhen) {
    match when {
        ColorWhen::Auto => ColorChoice::Auto,
        ColorWhen::Always => ColorChoice::Always,
        ColorWhen::Never => ColorChoice::Never,
    }
    .write_global();
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints words of our own, with colour where it is wanted. A reader that went away (`| head`) ends
/// the program quietly, as it does for other tools.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write_all(anstream::stdout().lock(), text)
}

/// Whether anybody still reads what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// As [`print`], for whoever goes on printing and should stop when nobody reads.
pub(crate) fn print_on(text: &str) -> io::Result<Reader> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error),
    }
}

/// Prints what a model said: for a file or a pipe byte for byte, because there it is data, for a
/// terminal made safe by [`text::shown`].
pub(crate) fn print_answer(text: &str) -> io::Result<()> {
    let stdout = io::stdout().lock();
    if stdout.is_terminal() {
        write_all(stdout, &text::shown(text))
    } else {
        write_all(stdout, text)
    }
}

fn write_all(mut stdout: impl io::Write, text: &str) -> io::Result<()> {
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints something about the work. Where stderr is gone there is nobody to tell.
pub(crate) fn note(text: &str) {
    let mut frame = frame();
    erase(&mut frame);
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// How many lines at the end of the terminal's standard error are a frame that is drawn again.
static FRAME: Mutex<usize> = Mutex::new(0);

fn frame() -> MutexGuard<'static, usize> {
    FRAME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws a frame in the place of the one before. Only for a terminal; [`note`] and the log take it
/// away before they write, so that nothing is drawn over them.
pub(crate) fn draw_frame(lines: &[String]) {
    let mut frame = frame();
    // Shown as a whole, and without breaking lines that are wider than we think.
    let mut drawn = String::from("\x1b[?2026h\x1b[?7l");
    drawn.push_str(&to_its_top(*frame));
    for line in lines {
        drawn.push_str(line);
        drawn.push_str("\x1b[K\n");
    }
    drawn.push_str("\x1b[J\x1b[?7h\x1b[?2026l");
    let _ = io::stderr().lock().write_all(drawn.as_bytes());
    *frame = lines.len();
}

/// Takes the frame away.
pub(crate) fn erase_frame() {
    erase(&mut frame());
}

/// Leaves the frame where it is, as ordinary text.
pub(crate) fn keep_frame() {
    *frame() = 0;
}

fn erase(frame: &mut usize) {
    if *frame > 0 {
        let erased = to_its_top(*frame) + "\x1b[J";
        let _ = io::stderr().lock().write_all(erased.as_bytes());
        *frame = 0;
    }
}

fn to_its_top(lines: usize) -> String {
    match lines {
        0 => "\r".to_owned(),
        lines => format!("\r\x1b[{lines}A"),
    }
}

/// Standard error as the log writes to it: below no frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOutput;

impl io::Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut frame = frame();
        erase(&mut frame);
        io::stderr().lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// Columns and rows of the terminal behind standard error.
pub(crate) fn size() -> (usize, usize) {
    let told = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let told = told.filter(|told| told.ws_col > 0 && told.ws_row > 0);
    told.map_or((80, 24), |told| (usize::from(told.ws_col), usize::from(told.ws_row)))
}

/// Whether what is drawn on standard error may have colour.
pub(crate) fn stderr_has_colour() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Takes away the line that stands on a terminal's standard error, whatever is said about colour.
pub(crate) fn clear_line() {
    let _ = io::stderr().lock().write_all(b"\r\x1b[2K");
}

pub(crate) fn show_error(error: &CliError) {
    note(&painted(&error.render()));
}

/// Shows a problem of the configuration that stops nothing.
pub(crate) fn show_warning(problem: &Problem) {
    let mut text =
        format!("{YELLOW}warning:{YELLOW:#} {}\n", text::escaped_lines(&problem.message));
    if let Some(hint) = &problem.hint {
        text.push_str(&format!("{CYAN}hint:{CYAN:#} {}\n", text::escaped_lines(hint)));
    }
    note(&text);
}

fn painted(error: &str) -> String {
    match error.strip_prefix("error:") {
        Some(rest) => format!(
            "{RED}error:{RED:#}{}",
            rest.replace("\nhint:", &format!("\n{CYAN}hint:{CYAN:#}"))
        ),
        None => error.to_owned(),
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
