//! `moothall audit`: verifies, shows and exports the audit log of drafts.

use std::fmt::Write as _;
use std::path::Path;

use moothall_core::drafts::{DraftEvent, HunkSelection};
use moothall_workspace::{
    DraftError, JournalAnchor, JournalHead, JournalLine, TornFile, read_journal, torn_files, verify,
};
use serde_json::{Value, json};

use super::draft::print_report;
use super::draft::store::{failed, id_of, options};
use crate::args::{AuditArgs, AuditCommand, GlobalArgs};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{self, DIM, GREEN, YELLOW};

pub(crate) fn run(global: &GlobalArgs, args: &AuditArgs) -> anyhow::Result<CliExit> {
    let (options, _) = options(global, &args.flags)?;
    let state = &options.state;
    if !state.join("audit.lock").exists() {
        return Err(CliError::usage("no audit log: this workspace has no drafts yet")
            .with_hint("to use another workspace, pass `--workspace DIR`")
            .into());
    }
    let json = args.flags.json;
    match &args.command {
        AuditCommand::Verify { anchor } => {
            let given = anchor.as_deref().map(read_anchor).transpose()?;
            let stored_anchor = options.anchor.as_deref().map(JournalAnchor::read).transpose();
            let stored_anchor = stored_anchor.map_err(failed)?.flatten();
            let torn = torn_files(state).map_err(failed)?;
            let mut report = json!({ "torn": torn.iter().map(torn_row).collect::<Vec<_>>() });
            if let Some(JournalAnchor { head: JournalHead { seq, hash }, .. }) = stored_anchor {
                report["anchor"] =
                    json!({ "records": seq, "head": hash, "file": options.anchor.as_deref() });
            }
            let (text, exit) = match verify(state, given.into_iter().chain(stored_anchor), |_| {}) {
                Ok(verified) => {
                    let JournalHead { seq, hash } = verified.head;
                    report["holds"] = json!(true);
                    report["records"] = json!(seq);
                    report["head"] = json!(hash);
                    report["files"] = json!(verified.files);
                    report["checkpoints"] = json!(verified.checkpoints);
                    report["key"] = json!(verified.key);
                    let text = format!(
                        "{GREEN}audit log verified{GREEN:#}: {seq} records, {} signed checkpoints\n\
                         anchor {seq}:{hash}\n{DIM}key {}{DIM:#}\n",
                        verified.checkpoints, verified.key
                    );
                    (text, CliExit::Fine)
                }
                Err(error @ DraftError::JournalDamaged { .. }) => {
                    report["holds"] = json!(false);
                    report["why"] = json!(error.to_string());
                    let mut text = format!("audit log is not valid: {error}\n");
                    if let (Some(path), Some(_)) = (&options.anchor, stored_anchor) {
                        let path = display::line(&path.display().to_string());
                        let _ = writeln!(
                            text,
                            "hint: if you restored an older copy of the store on purpose, delete \
                             its anchor file {path}"
                        );
                    }
                    (text, CliExit::VerdictNegative)
                }
                Err(error) => return Err(failed(error).into()),
            };
            let torn: String = torn.iter().map(torn_line).collect();
            print_report(json, &report, &format!("{text}{torn}"))?;
            Ok(exit)
        }
        AuditCommand::Show { draft } => {
            let draft_id = draft.as_deref().map(id_of).transpose()?;
            let mut lines = Vec::new();
            read_journal(state, |line| lines.push(line.clone())).map_err(failed)?;
            let is_about_draft =
                |line: &&JournalLine| draft_id.is_none_or(|id| line.text.contains(&id.to_string()));
            let shown: Vec<&JournalLine> = lines.iter().filter(is_about_draft).collect();
            let mut text = String::new();
            for line in &shown {
                let _ = writeln!(text, "{}", row(line));
            }
            let values: Vec<Value> =
                shown.iter().filter_map(|line| serde_json::from_str(&line.text).ok()).collect();
            print_report(json, &json!({ "records": values }), &text)
        }
        AuditCommand::Export { file } => {
            let mut text = String::new();
            let mut add = |line: &JournalLine| {
                let _ = writeln!(text, "{}", line.text);
            };
            verify(state, None, &mut add).map_err(failed)?;
            match file == Path::new("-") {
                true => terminal::print_answer(&text)?,
                false => fs_err::write(file, text)?,
            }
            Ok(CliExit::Fine)
        }
    }
}

fn read_anchor(text: &str) -> Result<JournalAnchor, CliError> {
    JournalAnchor::parse(text).ok_or_else(|| {
        CliError::usage(format!("invalid anchor `{}`: expected RECORD:HASH", display::line(text)))
            .with_hint("`moothall audit verify` prints the current anchor")
    })
}

fn torn_row(torn: &TornFile) -> Value {
    let TornFile { file, bytes, has_altered_record } = torn;
    json!({ "file": file, "bytes": bytes, "altered_record": has_altered_record })
}

fn torn_line(torn: &TornFile) -> String {
    let TornFile { file, bytes, .. } = torn;
    format!(
        "{YELLOW}warning{YELLOW:#}: {} contains {bytes} bytes of an incomplete record \
         after a crash\n",
        display::line(file)
    )
}

/// One line per record: sequence number, time, actor, kind, subject.
fn row(line: &JournalLine) -> String {
    let value: Value = serde_json::from_str(&line.text).unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or("").to_owned();
    let mut details = Vec::new();
    for key in ["draft", "path", "action", "say", "end", "summary", "reason"] {
        if let Some(text) = value[key].as_str().filter(|text| !text.is_empty()) {
            details.push(display::line(text));
        }
    }
    if let Some(drafts) = value["drafts"].as_array() {
        details.extend(drafts.iter().filter_map(Value::as_str).map(display::line));
    }
    if let Some(findings) = value["findings"].as_array() {
        details.extend(findings.iter().filter_map(|one| one["rule"].as_str()).map(display::line));
    }
    if let DraftEvent::Amended { hunks, files, result, .. } = &line.record.event {
        if let Some(HunkSelection { approved, of }) = hunks {
            let numbers: Vec<String> = approved.iter().map(ToString::to_string).collect();
            details.push(format!("hunks {} of {of}", numbers.join(",")));
        }
        if files.iter().any(|file| file.edited) {
            details.push("edited by a person".to_owned());
        }
        details.push(format!("result {result}"));
    }
    if let DraftEvent::Commented { comments, .. } = &line.record.event {
        details.extend(
            comments
                .iter()
                .map(|one| display::line(&format!("{}:{}: {}", one.path, one.line, one.text))),
        );
    }
    let (seq, when) = (line.head.seq, display::time(line.record.ts));
    let who = display::line(&line.record.actor.to_string());
    format!("{DIM}{seq:>5} {when}{DIM:#}  {who:<20}  {kind:<10}  {}", details.join("  "))
}
