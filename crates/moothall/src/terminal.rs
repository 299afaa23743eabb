//! Terminal output: data to stdout, everything else to stderr, with optional color.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use moothall_core::text;

use crate::args::ColorWhen;
use crate::config::ConfigProblem;
use crate::error::CliError;

pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// The commands write lines for terminals of this width; narrower ones get wrapped lines.
const WIDE_COLUMNS: u16 = 80;
/// In a terminal with fewer columns, nothing helps.
const MIN_COLUMNS: u16 = 20;

/// Sets the color choice of the whole process. `auto` respects the terminal, NO_COLOR and
/// CLICOLOR_FORCE.
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

/// Prints trusted text, with color if enabled. A closed pipe (`| head`) is not an error.
///
/// A narrow terminal gets lines that are wrapped between words, except for JSON, which people copy.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let columns = narrow_columns(io::stdout()).filter(|_| !text.starts_with(['{', '[']));
    let text = columns.map_or_else(|| text.into(), |columns| fit_lines(text, columns));
    write_all(anstream::stdout().lock(), &text)
}

/// Whether standard output is still being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdoutState {
    Open,
    Closed,
}

/// Like [`print()`], but reports a closed pipe so the caller can stop.
pub(crate) fn print_or_closed(text: &str) -> io::Result<StdoutState> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(StdoutState::Open),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(StdoutState::Closed),
        Err(error) => Err(error),
    }
}

/// Prints the answer of a model: unchanged to a file or pipe, where it is data, and sanitized by
/// [`text::sanitize`] to a terminal.
pub(crate) fn print_answer(text: &str) -> io::Result<()> {
    let stdout = io::stdout().lock();
    if stdout.is_terminal() {
        write_all(stdout, &text::sanitize(text))
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

static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses progress and notes in the whole process. Errors are still shown.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Prints a message to stderr, unless `--quiet` is set. Errors are ignored.
pub(crate) fn note(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        show(text);
    }
}

/// Prints an error, a warning or a prompt to stderr. Errors of writing are ignored.
pub(crate) fn show(text: &str) {
    let mut frame = frame();
    erase(&mut frame);
    let columns = narrow_columns(io::stderr());
    let text = columns.map_or_else(|| text.into(), |columns| fit_lines(text, columns));
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Number of lines at the bottom of the terminal that belong to the redrawn frame.
static FRAME: Mutex<usize> = Mutex::new(0);

fn frame() -> MutexGuard<'static, usize> {
    FRAME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces the previous frame. Only for a terminal. [`note`] and the log erase the frame before
/// they write, so that their text is not overwritten.
pub(crate) fn draw_frame(lines: &[String]) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    let mut frame = frame();
    // Synchronized update, with line wrapping disabled in case a line is wider than calculated.
    let mut drawn = String::from("\x1b[?2026h\x1b[?7l");
    drawn.push_str(&cursor_to_top(*frame));
    for line in lines {
        drawn.push_str(line);
        drawn.push_str("\x1b[K\n");
    }
    drawn.push_str("\x1b[J\x1b[?7h\x1b[?2026l");
    let _ = io::stderr().lock().write_all(drawn.as_bytes());
    *frame = lines.len();
}

pub(crate) fn erase_frame() {
    erase(&mut frame());
}

/// Keeps the frame on the screen as ordinary text.
pub(crate) fn keep_frame() {
    *frame() = 0;
}

/// Restores the terminal after a child process was killed while it drew a frame.
pub(crate) fn end_killed_frame() {
    if stderr_is_terminal() {
        let _ = io::stderr().lock().write_all(b"\x1b[?7h\x1b[?2026l\n");
    }
}

fn erase(frame: &mut usize) {
    if *frame > 0 {
        let erased = cursor_to_top(*frame) + "\x1b[J";
        let _ = io::stderr().lock().write_all(erased.as_bytes());
        *frame = 0;
    }
}

fn cursor_to_top(lines: usize) -> String {
    match lines {
        0 => "\r".to_owned(),
        lines => format!("\r\x1b[{lines}A"),
    }
}

/// Standard error for the log; erases the frame first.
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

/// Columns and rows of the terminal on standard error.
pub(crate) fn size() -> (usize, usize) {
    let window = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let window = window.filter(|window| window.ws_col > 0 && window.ws_row > 0);
    window.map_or((80, 24), |window| (usize::from(window.ws_col), usize::from(window.ws_row)))
}

/// Columns of the terminal on standard output; `None` for files and pipes.
pub(crate) fn stdout_columns() -> Option<usize> {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).ok()?.ws_col;
    (columns > 0).then(|| usize::from(columns))
}

/// The columns of a terminal that is too narrow for the lines of most commands.
fn narrow_columns(output: impl AsFd) -> Option<usize> {
    let columns = rustix::termios::tcgetwinsize(output).ok()?.ws_col;
    (MIN_COLUMNS..WIDE_COLUMNS).contains(&columns).then(|| usize::from(columns))
}

/// Breaks lines that are too long between words. The rest of a line is indented like its start, and
/// colors do not count.
fn fit_lines(text: &str, columns: usize) -> Cow<'_, str> {
    if text.lines().all(|line| visible_columns(line) <= columns) {
        return text.into();
    }
    let mut fitted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let start = line.len() - line.trim_start_matches(' ').len();
        let indent = &line[..start.min(columns / 2)];
        let mut width = 0;
        for word in line.split_inclusive(' ') {
            let length = visible_columns(word.trim_end());
            if length > 0 && width + length > columns {
                fitted.truncate(fitted.trim_end_matches(' ').len());
                if !(fitted.is_empty() || fitted.ends_with('\n')) {
                    fitted.push('\n');
                }
                // A long word needs the columns of the indent.
                width = indent.len().min(columns.saturating_sub(length));
                fitted.push_str(&indent[..width]);
            }
            fitted.push_str(word);
            width += length + usize::from(word.ends_with(' '));
        }
    }
    fitted.into()
}

fn visible_columns(text: &str) -> usize {
    anstream::adapter::strip_str(text).flat_map(str::chars).count()
}

/// Breaks text into lines of at most this many characters, between words. Line breaks are kept, and
/// a longer word gets its own line.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut width = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if width > 0 && width + 1 + length > columns {
                lines.push(std::mem::take(&mut line));
                width = 0;
            } else if width > 0 {
                line.push(' ');
                width += 1;
            }
            line.push_str(word);
            width += length;
        }
        lines.push(line);
    }
    lines
}

pub(crate) fn stderr_has_colour() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Clears the current line on a terminal's standard error, regardless of the color setting.
pub(crate) fn clear_line() {
    let _ = io::stderr().lock().write_all(b"\r\x1b[2K");
}

pub(crate) fn show_error(error: &CliError) {
    show(&painted(&error.render()));
}

/// Shows a configuration problem that does not stop the command.
pub(crate) fn show_warning(problem: &ConfigProblem) {
    let mut text =
        format!("{YELLOW}warning:{YELLOW:#} {}\n", text::escaped_lines(&problem.message));
    if let Some(hint) = &problem.hint {
        text.push_str(&format!("{CYAN}hint:{CYAN:#} {}\n", text::escaped_lines(hint)));
    }
    show(&text);
}

fn painted(error: &str) -> String {
    let painted = match error.strip_prefix("error:") {
        Some(rest) => format!("{RED}error:{RED:#}{rest}"),
        None => error.to_owned(),
    };
    painted.replace("\nhint:", &format!("\n{CYAN}hint:{CYAN:#}"))
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
