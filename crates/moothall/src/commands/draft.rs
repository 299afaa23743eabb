//! `moothall draft`: the draft tools of agents, for people and scripts.

mod checkers;
mod import;
pub(crate) mod store;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{CommentSide, Draft, DraftId, DraftState};
use moothall_core::gate::{GateAction, GateDecision};
use moothall_core::text;
use moothall_workspace::{DraftCaller, DraftEdit, DraftStore, FileRequirement, GateReport};
use serde_json::{Value, json};

use self::store::{failed, id_of, open_with_view};
use crate::args::{DraftCommand, DraftCommandArgs, DraftWriteArgs, GlobalArgs};
use crate::display;
use crate::display::table::{Table, TableColumn};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Read limit. The policy may set a lower one.
const MAX_FILE_BYTES: u64 = 16 << 20;

pub(crate) fn run(global: &GlobalArgs, args: &DraftCommandArgs) -> anyhow::Result<CliExit> {
    let opened = open_with_view(global, &args.flags, &args.view)?;
    let worker = opened.worker(&args.worker)?;
    let (store, json) = (&opened.store, args.flags.json);
    // Every command closes expired drafts.
    store.tidy().map_err(failed)?;
    match &args.command {
        DraftCommand::Request { path, task, new } => {
            let existing = if *new { FileRequirement::MayNot } else { FileRequirement::Must };
            let (draft, text) = store.request(&worker, task, path, existing).map_err(failed)?;
            let report = json!({
                "draft_id": draft.id,
                "draft_path": draft.id,
                "path": draft.path,
                "original_hash": draft.base.map(|file| file.sha256),
                "line_count": text.lines().count(),
                "state": draft.state,
            });
            print_report(json, &report, &format!("{}\n", draft.id))
        }
        DraftCommand::Read { draft } => {
            let (draft, text) = store.read(&worker, id_of(draft)?).map_err(failed)?;
            if !json {
                terminal::print_answer(&text)?;
                return Ok(CliExit::Fine);
            }
            let lines = text.lines().count();
            let report = json!({
                "content": text, "line_count": lines, "hash": draft.head(), "state": draft.state,
            });
            print_report(json, &report, "")
        }
        DraftCommand::Write(args) => {
            let if_match = args.if_match.as_deref().map(hash).transpose()?;
            write_draft(store, &worker, json, &args.draft, edit_of(args)?, if_match)
        }
        DraftCommand::Edit { draft, old, new } => {
            let edit = DraftEdit::Replace { old: old.clone(), new: new.clone() };
            write_draft(store, &worker, json, draft, edit, None)
        }
        DraftCommand::Check { drafts } => {
            let judged = store.check(&worker, &ids_of(drafts)?).map_err(failed)?;
            let report = json!({
                "verdict": judged.verdict,
                "diff": judged.diff,
                "checks": judged.checks,
                "doubts": judged.doubts,
            });
            let mut text = super::review::painted(&judged.diff);
            text.push_str(&verdict_text(&judged.verdict));
            text.push_str(&check_text(&judged));
            print_report(json, &report, &text)?;
            Ok(exit_of(judged.verdict.action))
        }
        DraftCommand::Submit { drafts, summary } => {
            submit(store, &worker, json, &ids_of(drafts)?, summary)
        }
        DraftCommand::Status { draft } => {
            let draft = store.status(&worker, id_of(draft)?).map_err(failed)?;
            print_report(json, &report_of(&draft), &status_text(&draft))
        }
        DraftCommand::List { all } => {
            let listed = store.list(&worker).map_err(failed)?;
            let shown: Vec<Draft> =
                listed.into_iter().filter(|one| *all || one.state.is_open()).collect();
            let report = json!({ "drafts": shown.iter().map(report_of).collect::<Vec<_>>() });
            print_report(json, &report, &list_text(&shown))
        }
        DraftCommand::Discard { draft } => {
            let draft = store.discard(&worker, id_of(draft)?).map_err(failed)?;
            print_report(
                json,
                &report_of(&draft),
                &format!("{} is {}\n", draft.id, draft.state.as_str()),
            )
        }
        DraftCommand::Rebase { draft } => {
            let (draft, clean) = store.rebase(&worker, id_of(draft)?).map_err(failed)?;
            let mut report = report_of(&draft);
            report["clean"] = clean.into();
            let message = match clean {
                true => "merged; submit the draft again\n",
                false => {
                    "merged with conflict markers; resolve them, then submit the draft again\n"
                }
            };
            print_report(json, &report, message)
        }
        DraftCommand::Import { file, task, path, submit: at_once } => {
            let text = text_of(file)?;
            let drafts = import::import(store, &worker, &text, task, path.as_deref())?;
            let ids: Vec<DraftId> = drafts.iter().map(|draft| draft.id).collect();
            if *at_once {
                let summary = "imported from a model answer";
                return submit(store, &worker, json, &ids, summary);
            }
            let report = json!({ "drafts": drafts.iter().map(report_of).collect::<Vec<_>>() });
            print_report(json, &report, &list_text(&drafts))
        }
        DraftCommand::Undo { draft } => {
            let drafts = store.undo(&opened.person(None)?, id_of(draft)?).map_err(failed)?;
            let undone = drafts.iter().all(|draft| draft.state == DraftState::Reverted);
            let report = json!({ "drafts": drafts.iter().map(report_of).collect::<Vec<_>>() });
            let message = match undone {
                true => format!("{GREEN}undone{GREEN:#}\n"),
                false => "not undone: a file changed after the draft was applied\n".to_owned(),
            };
            print_report(json, &report, &message)?;
            Ok(if undone { CliExit::Fine } else { CliExit::VerdictNegative })
        }
        DraftCommand::Purge { yes } => {
            if !*yes {
                return Err(CliError::usage("this discards every open draft of the workspace")
                    .with_hint("pass `--yes` to confirm")
                    .into());
            }
            let blobs = store.purge(&opened.person(None)?).map_err(failed)?;
            print_report(
                json,
                &json!({ "removed": blobs }),
                &format!("removed {blobs} stored file versions\n"),
            )
        }
    }
}

fn write_draft(
    store: &DraftStore,
    worker: &DraftCaller,
    json: bool,
    id: &str,
    edit: DraftEdit,
    if_match: Option<Sha256Hex>,
) -> anyhow::Result<CliExit> {
    let draft = store.write(worker, id_of(id)?, edit, if_match).map_err(failed)?;
    let (_, text) = store.read(worker, draft.id).map_err(failed)?;
    let report = json!({
        "success": true,
        "new_hash": draft.head(),
        "line_count": text.lines().count(),
        "revision": draft.revision,
        "state": draft.state,
    });
    print_report(json, &report, &format!("revision {} of {}\n", draft.revision, draft.path))
}

fn submit(
    store: &DraftStore,
    worker: &DraftCaller,
    json: bool,
    ids: &[DraftId],
    summary: &str,
) -> anyhow::Result<CliExit> {
    let submitted = store.submit(worker, ids, summary).map_err(failed)?;
    let GateReport { verdict, diff, checks, doubts } = &submitted.judged;
    let state = submitted.drafts.first().map_or(DraftState::Editing, |draft| draft.state);
    let seal = submitted
        .drafts
        .first()
        .and_then(|draft| draft.submission.as_ref())
        .map(|submission| submission.seal);
    let report = json!({
        "submitted": true,
        "message_id": seal,
        "state": state,
        "verdict": verdict,
        "diff": diff,
        "checks": checks,
        "doubts": doubts,
        "drafts": submitted.drafts.iter().map(report_of).collect::<Vec<_>>(),
    });
    let mut text = verdict_text(verdict);
    text.push_str(&check_text(&submitted.judged));
    let _ = match state {
        DraftState::Applied => writeln!(text, "{GREEN}applied{GREEN:#}"),
        DraftState::Escalated => writeln!(
            text,
            "{YELLOW}needs review{YELLOW:#}: moothall review show {}",
            ids.first().map(DraftId::to_string).unwrap_or_default()
        ),
        DraftState::Conflict => writeln!(
            text,
            "{YELLOW}conflict{YELLOW:#}: the file has changed; merge it with `moothall draft rebase`"
        ),
        other => writeln!(text, "{}: fix the draft and submit it again", other.as_str()),
    };
    print_report(json, &report, &text)?;
    Ok(match state {
        DraftState::Applied => CliExit::Fine,
        DraftState::Escalated => CliExit::NeedsPerson,
        _ => CliExit::VerdictNegative,
    })
}

/// Output of failed checks, and concerns of the reviewing model.
fn check_text(judged: &GateReport) -> String {
    let mut text = String::new();
    for check in judged.checks.iter().filter(|check| !check.passed) {
        let _ = writeln!(text, "{DIM}check `{}`:{DIM:#}", text::sanitize_line(&check.id));
        for line in check.output.lines() {
            let _ = writeln!(text, "  {DIM}{}{DIM:#}", text::sanitize_line(line));
        }
    }
    for doubt in &judged.doubts {
        let why = text::sanitize_line(&doubt.why);
        let _ = writeln!(text, "{DIM}model review: {why}{DIM:#}");
    }
    text
}

fn edit_of(args: &DraftWriteArgs) -> Result<DraftEdit, CliError> {
    Ok(match &args.file {
        Some(file) => DraftEdit::Content(text_of(file)?),
        None if args.delete => DraftEdit::Delete,
        None if args.executable => DraftEdit::Executable(true),
        None if args.not_executable => DraftEdit::Executable(false),
        None => DraftEdit::Rename(args.rename.clone().unwrap_or_default()),
    })
}

/// Reads a file, or standard input for `-`.
pub(crate) fn text_of(file: &Path) -> Result<String, CliError> {
    let broken = |error: std::io::Error| {
        CliError::usage(format!("cannot read `{}`", file.display())).with_source(error)
    };
    let mut bytes = Vec::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes),
        false => fs_err::File::open(file)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)),
    };
    read.map_err(broken)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(CliError::usage(format!("`{}` is larger than 16 MiB", file.display())));
    }
    String::from_utf8(bytes).map_err(|_| {
        CliError::usage(format!("`{}` is not UTF-8 text", file.display()))
            .with_hint("convert the file to UTF-8; drafts cannot contain binary data")
    })
}

fn ids_of(drafts: &[String]) -> Result<Vec<DraftId>, CliError> {
    drafts.iter().map(|draft| id_of(draft)).collect()
}

fn hash(text: &str) -> Result<Sha256Hex, CliError> {
    Sha256Hex::parse(text)
        .ok_or_else(|| CliError::usage("invalid hash: expected 64 lower-case hexadecimal digits"))
}

pub(crate) fn exit_of(action: GateAction) -> CliExit {
    match action {
        GateAction::Allow | GateAction::Warn => CliExit::Fine,
        GateAction::Escalate => CliExit::NeedsPerson,
        GateAction::Reject => CliExit::VerdictNegative,
    }
}

pub(crate) fn print_report(as_json: bool, report: &Value, text: &str) -> anyhow::Result<CliExit> {
    match as_json {
        true => terminal::print(&format!("{report:#}\n"))?,
        false => terminal::print(text)?,
    }
    Ok(CliExit::Fine)
}

/// JSON form of a draft.
pub(crate) fn report_of(draft: &Draft) -> Value {
    json!({
        "draft_id": draft.id,
        "task": draft.task,
        "owner": draft.owner.to_string(),
        "path": draft.path,
        "rename_to": draft.change.rename_to,
        "deletes": draft.change.file.is_none() && draft.base.is_some(),
        "state": draft.state,
        "revision": draft.revision,
        "rejections": draft.rejections,
        "original_hash": draft.base.map(|file| file.sha256),
        "head_hash": draft.head(),
        "conflict": draft.conflict,
        "submission": draft.submission,
    })
}

pub(crate) fn verdict_text(verdict: &GateDecision) -> String {
    let stats = &verdict.stats;
    let mut text = format!(
        "{BOLD}{}{BOLD:#}  {DIM}+{} -{} ({} moved){DIM:#}\n",
        verdict.action, stats.added, stats.removed, stats.moved
    );
    for one in &verdict.findings {
        let line = one.line.map_or_else(String::new, |line| format!(":{line}"));
        let _ = writeln!(
            text,
            "  {YELLOW}{:<8}{YELLOW:#} {:<24} {}{line}  {}",
            one.action.as_str(),
            one.rule.name(),
            display::line(one.path.as_str()),
            one.message
        );
    }
    text
}

fn status_text(draft: &Draft) -> String {
    let mut text = format!(
        "{BOLD}{}{BOLD:#}  {}  {}  revision {}\n",
        draft.id,
        draft.state.as_str(),
        display::line(draft.path.as_str()),
        draft.revision
    );
    let Some(submission) = &draft.submission else { return text };
    for one in &submission.findings {
        let line = one.line.map_or_else(String::new, |line| format!(":{line}"));
        let path = display::line(one.path.as_str());
        let _ = writeln!(
            text,
            "  {:<8} {:<24} {path}{line}  {}",
            one.action.as_str(),
            one.rule.name(),
            one.message
        );
    }
    if let Some((say, who, reason)) = &submission.reviewed {
        let word = match say {
            moothall_core::drafts::ReviewDecision::Approve => "approved",
            moothall_core::drafts::ReviewDecision::Reject => "rejected",
            moothall_core::drafts::ReviewDecision::SendBack => "changes requested",
        };
        let _ = writeln!(text, "  {word} by {}: {}", display::line(&who.id), display::line(reason));
    }
    for one in &submission.comments {
        let comment = &one.comment;
        let path = display::line(comment.path.as_str());
        let (by, words) = (display::line(&one.by.id), display::line(&comment.text));
        let side = if comment.side == CommentSide::Old { " (before the change)" } else { "" };
        let _ = writeln!(text, "  {path}:{}{side}  {by}: {words}", comment.line);
    }
    text
}

pub(crate) fn list_text(drafts: &[Draft]) -> String {
    if drafts.is_empty() {
        return "no drafts\n".to_owned();
    }
    let cells =
        |cell: &dyn Fn(&Draft) -> String| -> Vec<String> { drafts.iter().map(cell).collect() };
    let task = |draft: &Draft| display::cut(draft.task.as_str(), 20);
    let columns = vec![
        TableColumn::text("draft", 0, cells(&|draft| draft.id.to_string())),
        TableColumn::text("state", 1, cells(&|draft| draft.state.as_str().to_owned())).at_least(9),
        TableColumn::text("task", 2, cells(&task)).at_least(20),
        TableColumn::text("file", 0, cells(&|draft| display::line(draft.path.as_str()))),
    ];
    Table::new(columns, terminal::stdout_columns()).render()
}
