//! `moothall audit`: the journal of drafts, checked, read and taken along.

use std::fmt::Write as _;
use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_engine::drafts::{DraftError, Head, Line, verify};
use serde_json::{Value, json};

use super::draft::say;
use super::draft::store::{failed, id_of, options};
use super::words;
use crate::args::{AuditArgs, AuditCommand, Global};
use crate::error::{CliError, Exit};
use crate::terminal::{self, DIM, GREEN};

pub(super) fn run(global: &Global, args: &AuditArgs) -> anyhow::Result<Exit> {
    let (options, _) = options(global, &args.flags)?;
    let state = &options.state;
    if !state.join("audit.lock").exists() {
        return Err(CliError::usage("there is no journal: nothing was drafted here yet").into());
    }
    let json = args.flags.json;
    match &args.command {
        AuditCommand::Verify { anchor } => {
            let anchor = anchor.as_deref().map(read_anchor).transpose()?;
            match verify(state, anchor, |_| {}) {
                Ok(verified) => {
                    let Head { seq, hash } = verified.head;
                    let report = json!({
                        "holds": true, "records": seq, "head": hash, "files": verified.files,
                        "checkpoints": verified.checkpoints, "key": verified.key,
                    });
                    let text = format!(
                        "{GREEN}holds{GREEN:#}: {seq} records, {} signed checkpoints\n\
                         anchor {seq}:{hash}\n{DIM}key {}{DIM:#}\n",
                        verified.checkpoints, verified.key
                    );
                    say(json, &report, &text)
                }
                Err(error @ DraftError::JournalDamaged { .. }) => {
                    let report = json!({ "holds": false, "why": error.to_string() });
                    say(json, &report, &format!("does not hold: {error}\n"))?;
                    Ok(Exit::VerdictNegative)
                }
                Err(error) => Err(failed(error).into()),
            }
        }
        AuditCommand::Show { draft } => {
            let wanted = draft.as_deref().map(id_of).transpose()?;
            let lines = read(state)?;
            let about = |line: &&Line| wanted.is_none_or(|id| line.text.contains(&id.to_string()));
            let shown: Vec<&Line> = lines.iter().filter(about).collect();
            let mut text = String::new();
            for line in &shown {
                let _ = writeln!(text, "{}", row(line));
            }
            let values: Vec<Value> =
                shown.iter().filter_map(|line| serde_json::from_str(&line.text).ok()).collect();
            say(json, &json!({ "records": values }), &text)
        }
        AuditCommand::Export { file } => {
            let text: String = read(state)?.iter().map(|line| format!("{}\n", line.text)).collect();
            match file == Path::new("-") {
                true => terminal::print_answer(&text)?,
                false => fs_err::write(file, text)?,
            }
            Ok(Exit::Fine)
        }
    }
}

fn read(state: &Path) -> Result<Vec<Line>, CliError> {
    let mut lines = Vec::new();
    verify(state, None, |line| lines.push(line.clone())).map_err(failed)?;
    Ok(lines)
}

fn read_anchor(text: &str) -> Result<Head, CliError> {
    let read = || {
        let (seq, hash) = text.split_once(':')?;
        Some(Head { seq: seq.parse().ok()?, hash: Sha256Hex::parse(hash)? })
    };
    read().ok_or_else(|| {
        CliError::usage("an anchor is the number of a record, `:`, and its hash")
            .with_hint("`moothall audit verify` prints one to keep elsewhere")
    })
}

/// One record in one line: when, who, what, about what.
fn row(line: &Line) -> String {
    let value: Value = serde_json::from_str(&line.text).unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or("").to_owned();
    let mut about = Vec::new();
    for key in ["draft", "path", "action", "say", "end", "summary", "reason"] {
        if let Some(text) = value[key].as_str().filter(|text| !text.is_empty()) {
            about.push(words::line(text));
        }
    }
    if let Some(drafts) = value["drafts"].as_array() {
        about.extend(drafts.iter().filter_map(Value::as_str).map(words::line));
    }
    if let Some(findings) = value["findings"].as_array() {
        about.extend(findings.iter().filter_map(|one| one["rule"].as_str()).map(words::line));
    }
    let (seq, when) = (line.head.seq, words::time(line.record.ts));
    let who = words::line(&line.record.actor.to_string());
    format!("{DIM}{seq:>5} {when}{DIM:#}  {who:<20}  {kind:<10}  {}", about.join("  "))
}
