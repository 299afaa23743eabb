//! `moothall` without a command: what it does, what to try, and the state of this machine.
//!
//! The page reads files only. It starts no process and tests nothing, so it appears immediately.

use std::fmt::Write as _;

use moothall_sandbox::SandboxHost;
use moothall_sandbox::image::ImageStore;

use crate::args::GlobalArgs;
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::isolation;
use crate::terminal::{self, BOLD, DIM, YELLOW, wrap};

/// The page is laid out for this width, and for narrower terminals.
const MAX_COLUMNS: usize = 80;
/// Narrower terminals get each text below its command.
const MIN_TABLE_COLUMNS: usize = 64;

/// The image that programs run in.
const IMAGE: &str = "python";

const TRY: [(&str, &str); 3] = [
    ("moothall demo", "Take a tour of everything, in two minutes"),
    ("moothall check --sample", "Compare the numbers in a text with filings"),
    (
        "moothall draft request notes.md --new --task try",
        "Propose a file; it is checked before it is written",
    ),
];

const NEXT: [(&str, &str); 3] = [
    ("moothall init", "Choose a model"),
    ("moothall serve --open", "Use the web UI"),
    ("moothall --help", "List the commands"),
];

pub(crate) fn run(global: &GlobalArgs) -> anyhow::Result<CliExit> {
    let columns = match terminal::stdout_is_terminal() {
        true => terminal::size().0,
        false => MAX_COLUMNS,
    };
    let state = CommandContext::load(global.config.as_deref(), toml::Table::new());
    let rows = match &state {
        Ok(context) => machine_state(context),
        Err(error) => vec![("settings", problem(error))],
    };
    terminal::print(&page(&rows, columns.min(MAX_COLUMNS)))?;
    Ok(CliExit::Fine)
}

/// The state of one part of this machine.
struct MachineState {
    text: String,
    ready: bool,
}

fn ready(text: String) -> MachineState {
    MachineState { text, ready: true }
}

fn not_ready(text: impl Into<String>) -> MachineState {
    MachineState { text: text.into(), ready: false }
}

fn problem(error: &CliError) -> MachineState {
    not_ready(format!("{}; `moothall config check` explains it", error.full_message()))
}

fn machine_state(context: &CommandContext) -> Vec<(&'static str, MachineState)> {
    let providers: Vec<&str> = context.keys.providers().collect();
    let keys = match providers.as_slice() {
        [] => not_ready("none found; `moothall key set PROVIDER` stores one"),
        found => ready(found.join(", ")),
    };
    let model = match context.model(None) {
        Ok(model) => ready(model.to_string()),
        Err(_) if providers.is_empty() => not_ready("none; `moothall init` sets one up"),
        Err(error) => not_ready(format!("{}; `moothall init` sets one up", error.message)),
    };
    vec![("API keys", keys), ("model", model), ("sandbox", sandbox_state(context))]
}

/// The sandbox that the latest tests found, which may be out of date.
fn sandbox_state(context: &CommandContext) -> MachineState {
    let loaded = &context.loaded;
    if !cfg!(target_os = "linux") {
        return not_ready("none; sandboxes need Linux");
    }
    let policy = match isolation::policy(loaded, None, false) {
        Ok(policy) => policy,
        Err(error) => return problem(&error),
    };
    if ImageStore::at(isolation::images(loaded)).find(IMAGE).is_err() {
        return not_ready(format!(
            "no image for programs; build it: `moothall image build {IMAGE}`"
        ));
    }
    let reports = SandboxHost::latest_probes(&loaded.locations.folders.cache, IMAGE);
    let usable = reports
        .iter()
        .find(|report| report.faults().is_empty() && policy.allows(report.engine, report.class));
    match usable {
        Some(report) => ready(format!(
            "{} on {}, when last tested; `moothall doctor` repeats it",
            report.class, report.engine
        )),
        None if reports.is_empty() => not_ready("not tested yet; test it: `moothall doctor`"),
        None => not_ready("none is strong enough; `moothall doctor` says why"),
    }
}

fn page(state: &[(&str, MachineState)], columns: usize) -> String {
    let mut page = String::new();
    let about = concat!(
        "Moothall ",
        env!("CARGO_PKG_VERSION"),
        " checks what AI agents produce before you rely on it."
    );
    write_lines(&mut page, &wrap(about, columns), 0);
    let _ = writeln!(page, "\n{BOLD}Try it, without an API key or a network{BOLD:#}");
    write_commands(&mut page, &TRY, columns);
    let _ = writeln!(page, "\n{BOLD}This machine{BOLD:#}");
    for (part, MachineState { text, ready }) in state {
        let style = if *ready { anstyle::Style::new() } else { YELLOW };
        let mut lines = wrap(text, columns.saturating_sub(12)).into_iter();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(page, "  {part:<8}  {style}{first}{style:#}");
        for line in lines {
            let _ = writeln!(page, "{:12}{style}{line}{style:#}", "");
        }
    }
    let _ = writeln!(page, "\n{BOLD}Next{BOLD:#}");
    write_commands(&mut page, &NEXT, columns);
    page
}

/// Writes commands with their descriptions beside them, or below them if space is short.
fn write_commands(page: &mut String, commands: &[(&str, &str)], columns: usize) {
    let indent = if columns < MIN_TABLE_COLUMNS { 4 } else { 28 };
    for (command, about) in commands {
        let about = wrap(about, columns.saturating_sub(indent));
        let mut about = about.iter();
        let padded = format!("  {command}");
        if padded.len() + 2 > indent {
            write_lines(page, &wrap(command, columns.saturating_sub(2)), 2);
        } else if let Some(first) = about.next() {
            let _ = writeln!(page, "{padded:<indent$}{DIM}{first}{DIM:#}");
        }
        for line in about {
            let _ = writeln!(page, "{:indent$}{DIM}{line}{DIM:#}", "");
        }
    }
}

fn write_lines(page: &mut String, lines: &[String], indent: usize) {
    for line in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{:indent$}{line}", "");
    }
}

#[cfg(test)]
#[path = "start_page_tests.rs"]
mod tests;
