//! `moothall audit`: the journal of drafts, checked, read and taken along.

use std::fmt::Write as _;
use std::path::Path;

use moothall_workspace::{
    Anchor, DraftError, Head, Line, TornFile, read_journal, torn_files, verify,
};
use serde_json::{Value, json};

use super::draft::say;
use super::draft::store::{failed, id_of, options};
use crate::args::{AuditArgs, AuditCommand, Global};
use crate::display;
use crate::error::{CliError, Exit};
use crate::terminal::{self, DIM, GREEN, YELLOW};

pub(super) fn run(global: &Global, args: &AuditArgs) -> anyhow::Result<Exit> {
    let (options, _) = options(global, &args.flags)?;
    let state = &options.state;
    if !state.join("audit.lock").exists() {
        return Err(CliError::usage("there is no journal: nothing was drafted here yet").into());
    }
    let json = args.flags.json;
    match &args.command {
        AuditCommand::Verify { anchor } => {
            let given = anchor.as_deref().map(read_anchor).transpose()?;
            let kept = options.anchor.as_deref().map(Anchor::read).transpose();
            let kept = kept.map_err(failed)?.flatten();
            let torn = torn_files(state).map_err(failed)?;
            let mut report = json!({ "torn": torn.iter().map(torn_row).collect::<Vec<_>>() });
            if let Some(Anchor { head: Head { seq, hash }, .. }) = kept {
                report["anchor"] =
                    json!({ "records": seq, "head": hash, "file": options.anchor.as_deref() });
            }
            let (text, exit) = match verify(state, given.into_iter().chain(kept), |_| {}) {
                Ok(verified) => {
                    let Head { seq, hash } = verified.head;
                    report["holds"] = json!(true);
                    report["records"] = json!(seq);
                    report["head"] = json!(hash);
                    report["files"] = json!(verified.files);
                    report["checkpoints"] = json!(verified.checkpoints);
                    report["key"] = json!(verified.key);
                    let text = format!(
                        "{GREEN}holds{GREEN:#}: {seq} records, {} signed checkpoints\n\
                         anchor {seq}:{hash}\n{DIM}key {}{DIM:#}\n",
                        verified.checkpoints, verified.key
                    );
                    (text, Exit::Fine)
                }
                Err(error @ DraftError::JournalDamaged { .. }) => {
                    report["holds"] = json!(false);
                    report["why"] = json!(error.to_string());
                    let mut text = format!("does not hold: {error}\n");
                    if let (Some(path), Some(_)) = (&options.anchor, kept) {
                        let path = display::line(&path.display().to_string());
                        let _ = writeln!(
                            text,
                            "hint: if you restored an older copy of the store on purpose, delete \
                             its anchor {path}"
                        );
                    }
                    (text, Exit::VerdictNegative)
                }
                Err(error) => return Err(failed(error).into()),
            };
            let torn: String = torn.iter().map(torn_line).collect();
            say(json, &report, &format!("{text}{torn}"))?;
            Ok(exit)
        }
        AuditCommand::Show { draft } => {
            let wanted = draft.as_deref().map(id_of).transpose()?;
            let mut lines = Vec::new();
            read_journal(state, |line| lines.push(line.clone())).map_err(failed)?;
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
            let mut text = String::new();
            let mut add = |line: &Line| {
                let _ = writeln!(text, "{}", line.text);
            };
            verify(state, None, &mut add).map_err(failed)?;
            match file == Path::new("-") {
                true => terminal::print_answer(&text)?,
                false => fs_err::write(file, text)?,
            }
            Ok(Exit::Fine)
        }
    }
}

fn read_anchor(text: &str) -> Result<Anchor, CliError> {
    Anchor::parse(text).ok_or_else(|| {
        CliError::usage("an anchor is the number of a record, `:`, and its hash")
            .with_hint("`moothall audit verify` prints one to keep elsewhere")
    })
}

fn torn_row(torn: &TornFile) -> Value {
    let TornFile { file, bytes, has_altered_record } = torn;
    json!({ "file": file, "bytes": bytes, "altered_record": has_altered_record })
}

fn torn_line(torn: &TornFile) -> String {
    let TornFile { file, bytes, .. } = torn;
    format!(
        "{YELLOW}warning{YELLOW:#}: {} holds {bytes} bytes of an unfinished record that a crash \
         left\n",
        display::line(file)
    )
}

/// One record in one line: when, who, what, about what.
fn row(line: &Line) -> String {
    let value: Value = serde_json::from_str(&line.text).unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or("").to_owned();
    let mut about = Vec::new();
    for key in ["draft", "path", "action", "say", "end", "summary", "reason"] {
        if let Some(text) = value[key].as_str().filter(|text| !text.is_empty()) {
            about.push(display::line(text));
        }
    }
    if let Some(drafts) = value["drafts"].as_array() {
        about.extend(drafts.iter().filter_map(Value::as_str).map(display::line));
    }
    if let Some(findings) = value["findings"].as_array() {
        about.extend(findings.iter().filter_map(|one| one["rule"].as_str()).map(display::line));
    }
    let (seq, when) = (line.head.seq, display::time(line.record.ts));
    let who = display::line(&line.record.actor.to_string());
    format!("{DIM}{seq:>5} {when}{DIM:#}  {who:<20}  {kind:<10}  {}", about.join("  "))
}
