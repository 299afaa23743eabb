//! `moothall --help`: the commands by task, most used first.
//!
//! clap has no headings for subcommands, so the list is rendered here, from the help of the commands themselves.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

struct CommandGroup {
    heading: &'static str,
    common: &'static [&'static str],
    /// Shown by `moothall help --all` only.
    rare: &'static [&'static str],
}

const GROUPS: [CommandGroup; 6] = [
    CommandGroup { heading: "Check", common: &["check", "facts", "verify"], rare: &[] },
    CommandGroup {
        heading: "Consult",
        common: &["consult", "report", "moves", "fork", "committee"],
        rare: &["prompts", "approve", "diff", "eval", "outcome", "panel"],
    },
    CommandGroup { heading: "Programs", common: &["run", "exec", "ask"], rare: &[] },
    CommandGroup {
        heading: "Agents and drafts",
        common: &["gate", "guard", "connect", "mcp", "edit", "review", "draft", "policy", "audit"],
        rare: &["hook"],
    },
    CommandGroup {
        heading: "Runs",
        common: &["runs", "show", "calls", "events", "pause", "resume", "cancel"],
        rare: &["replay", "backup", "restore"],
    },
    CommandGroup {
        heading: "Server and setup",
        common: &["demo", "init", "key", "serve", "doctor", "models", "config", "image"],
        rare: &[
            "sandbox",
            "login",
            "notify",
            "token",
            "team",
            "worker",
            "cluster",
            "completions",
            "man",
            "help",
        ],
    },
];

const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

{before-help}Global options:
{options}{after-help}";

/// The command line with its help by task.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let mut list = render(&command, false);
    list.push_str(
        "`moothall help --all` lists all commands; `moothall help COMMAND` describes one.\n\n",
    );
    command.before_help(list).help_template(TEMPLATE)
}

/// All commands, for `moothall help --all`.
pub(crate) fn all_commands() -> String {
    render(&Cli::command(), true)
}

fn render(command: &Command, all: bool) -> String {
    let mut list = String::new();
    for group in &GROUPS {
        let _ = writeln!(list, "{}:", group.heading);
        let rare = if all { group.rare } else { &[] };
        for name in group.common.iter().chain(rare) {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {name:<12} {about}");
        }
        list.push('\n');
    }
    list
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
