//! `moothall sandbox`: lists and cleans up sandboxes on this machine.

use moothall_core::text::sanitize_line;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use moothall_sandbox::{SandboxRecord, SandboxRegistry};
use serde_json::json;

use crate::args::{GlobalArgs, SandboxCommand};
use crate::config;
use crate::error::CliExit;
use crate::isolation;
use crate::logging;
use crate::terminal::{self, BOLD};

pub(crate) fn run(global: &GlobalArgs, command: &SandboxCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let records = isolation::records(&loaded);
    match command {
        SandboxCommand::List { label, json } => {
            let mut records = SandboxRegistry::list(&records).map_err(isolation::failure)?;
            records.retain(|record| {
                label.iter().all(|(key, value)| record.labels.0.get(key) == Some(value))
            });
            let text = if *json { format!("{:#}\n", json!(records)) } else { table(&records) };
            terminal::print(&text)?;
        }
        SandboxCommand::Reap { json } => {
            let reaped = SandboxRegistry::reap(&records).map_err(isolation::failure)?;
            let text = match (json, reaped.len()) {
                (true, _) => format!("{:#}\n", json!({ "reaped": reaped })),
                (false, 0) => "nothing to clean up\n".to_owned(),
                (false, _) => format!("cleaned up {}\n", reaped.join(", ")),
            };
            terminal::print(&text)?;
        }
    }
    Ok(CliExit::Fine)
}

fn table(records: &[SandboxRecord]) -> String {
    if records.is_empty() {
        return "no sandboxes\n".to_owned();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let mut text = format!(
        "{BOLD}{:8}  {:13}  {:8}  {:>6}  name and labels{BOLD:#}\n",
        "engine", "class", "image", "age"
    );
    for record in records {
        let age = now_ms.saturating_sub(record.started_at_ms) / 1000;
        let labels: Vec<String> =
            record.labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _ = writeln!(
            text,
            "{:8}  {:13}  {:8}  {:>4} s  {} {}",
            record.engine,
            record.class,
            sanitize_line(&record.image),
            age,
            sanitize_line(&record.name),
            sanitize_line(&labels.join(" ")),
        );
    }
    text
}
