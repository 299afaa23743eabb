//! Writing to the terminal: data to stdout, everything else to stderr, colour only where it is wanted.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};

use crate::args::ColorWhen;
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

/// Prints data. A reader that went away (`| head`) ends the program quietly, as it does for other tools.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints something about the work. Where stderr is gone there is nobody to tell.
pub(crate) fn note(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

pub(crate) fn show_error(error: &CliError) {
    let text = error.render();
    let painted = match text.strip_prefix("error:") {
        Some(rest) => format!(
            "{RED}error:{RED:#}{}",
            rest.replacen("\nhint:", &format!("\n{CYAN}hint:{CYAN:#}"), 1)
        ),
        None => text,
    };
    note(&painted);
}

/// Text of a model, made safe for a terminal: escape sequences could rewrite the screen or the clipboard.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c })
        .collect()
}
