//! `moothall notify`: lists and tests the receivers of notices, and sends kept notices again.

use std::fmt::Write as _;

use moothall_core::text::sanitize_line;
use serde_json::json;

use super::runtime;
use crate::args::{GlobalArgs, NotifyCommand};
use crate::config::LoadedConfig;
use crate::error::CliExit;
use crate::notify::{self, TargetStatus};
use crate::terminal::{self, DIM, GREEN, YELLOW};
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, command: &NotifyCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    match command {
        NotifyCommand::List { json } => list(&loaded, *json),
        NotifyCommand::Test { target } => {
            let sent = runtime()?.block_on(notify::send_test(&loaded, target.as_deref()))?;
            terminal::print(&format!("sent a test message to {}\n", sent.join(" and ")))?;
            Ok(CliExit::Fine)
        }
        NotifyCommand::Resend { target } => {
            let result = runtime()?.block_on(notify::resend_all(&loaded, target.as_deref()))?;
            terminal::print(&format!("messages sent: {}, left: {}\n", result.sent, result.left))?;
            match notify::resend_failure(&result) {
                Some(error) => Err(error.into()),
                None => Ok(CliExit::Fine),
            }
        }
    }
}

fn list(loaded: &LoadedConfig, as_json: bool) -> anyhow::Result<CliExit> {
    let targets = notify::status(loaded);
    if as_json {
        let rows = targets.iter().map(|target| {
            json!({
                "name": target.name,
                "kind": target.kind,
                "events": target.events,
                "waiting": target.waiting,
                "last_at": target.last_at,
                "last_error": target.last_error,
            })
        });
        let all = json!({ "targets": rows.collect::<Vec<_>>() });
        terminal::print(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
        return Ok(CliExit::Fine);
    }
    if targets.is_empty() {
        terminal::print("no notifications are configured\n")?;
        terminal::note("hint: add a section `[notify.target.NAME]` to the configuration\n");
        return Ok(CliExit::Fine);
    }
    terminal::print(&targets.iter().map(target_text).collect::<String>())?;
    Ok(CliExit::Fine)
}

fn target_text(target: &TargetStatus) -> String {
    let TargetStatus { name, kind, events, waiting, last_at, last_error } = target;
    let mut text = format!("{name}  {kind}  {DIM}{}{DIM:#}\n", events.join(", "));
    // Writing to a String cannot fail.
    let _ = match (last_at, last_error) {
        (None, _) => writeln!(text, "  not used yet"),
        (Some(at), None) => writeln!(text, "  {GREEN}delivered{GREEN:#} {at}"),
        (Some(at), Some(error)) => {
            writeln!(text, "  {YELLOW}failed{YELLOW:#} {at}: {}", sanitize_line(error))
        }
    };
    if *waiting > 0 {
        let _ = writeln!(text, "  waiting: {waiting}  (`moothall notify resend {name}`)");
    }
    text
}
