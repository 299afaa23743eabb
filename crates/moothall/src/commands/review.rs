//! `moothall review`: lists and shows drafts that need review, and records the decision.

mod editor;
mod hunk_session;
mod partial;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use moothall_core::Sha256Hex;
use moothall_core::drafts::{CommentSide, Draft, DraftState, ReviewDecision, ReviewHunkKind};
use moothall_core::gate::{ReviewChannel, unified};
use moothall_core::text;
use moothall_workspace::{DiffLine, DiffSide, DraftDiff, SubmissionFile, SubmissionHunk};
use serde_json::json;

use super::draft::store::{OpenDraftStore, failed, id_of, open};
use super::draft::{print_report, report_of};
use crate::args::{GlobalArgs, ReviewArgs, ReviewCommand, ReviewDecisionArgs};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{BOLD, DIM, GREEN, YELLOW};

const RED: Style = AnsiColor::Red.on_default();
/// Minimum number of seal digits that a user must type.
const SEAL_DIGITS: usize = 12;
/// Longer lines are cut.
const LINE_CHARS: usize = 400;

pub(crate) fn run(global: &GlobalArgs, args: &ReviewArgs) -> anyhow::Result<CliExit> {
    let opened = open(global, &args.flags)?;
    opened.warn_about_policy();
    let json = args.flags.json;
    match args.command.as_ref().unwrap_or(&ReviewCommand::List) {
        ReviewCommand::List => list(&opened, json),
        ReviewCommand::Show { draft, full } => show(&opened, draft, *full, json),
        ReviewCommand::Hunks { draft } => hunk_session::run(&opened, args, draft),
        ReviewCommand::Approve(approve)
            if !approve.hunks.is_empty() || approve.content.is_some() =>
        {
            partial::approve(&opened, args, approve, json)
        }
        ReviewCommand::Approve(approve) => {
            record_decision(&opened, args, &approve.decision, ReviewDecision::Approve, json)
        }
        ReviewCommand::Reject(decision_args) => {
            record_decision(&opened, args, decision_args, ReviewDecision::Reject, json)
        }
        ReviewCommand::SendBack(decision_args) => {
            record_decision(&opened, args, decision_args, ReviewDecision::SendBack, json)
        }
        ReviewCommand::Comment(comment) => partial::comment(&opened, args, comment, json),
    }
}

fn list(opened: &OpenDraftStore, json: bool) -> anyhow::Result<CliExit> {
    opened.store.tidy().map_err(failed)?;
    let all = opened.store.list(&opened.reader()).map_err(failed)?;
    let waiting: Vec<&Draft> =
        all.iter().filter(|one| one.state == DraftState::Escalated).collect();
    let mut text = String::new();
    if waiting.is_empty() {
        text.push_str("no drafts need review\n");
    }
    for draft in &waiting {
        let Some(submission) = &draft.submission else { continue };
        let files = submission.drafts.len();
        let many = if files == 1 { String::new() } else { format!("  one of {files} files") };
        let _ = writeln!(
            text,
            "{BOLD}{}{BOLD:#}  {}{many}\n  {DIM}{}  {}  {}{DIM:#}",
            draft.id,
            display::line(draft.path.as_str()),
            display::time(submission.at),
            display::line(&draft.owner.to_string()),
            display::line(draft.task.as_str())
        );
        if !submission.summary.is_empty() {
            let _ =
                writeln!(text, "  summary by the worker: {}", display::line(&submission.summary));
        }
        let rules: Vec<&str> = submission.findings.iter().map(|one| one.rule.name()).collect();
        let _ = writeln!(text, "  {YELLOW}{}{YELLOW:#}", rules.join(", "));
    }
    if let Some(first) = waiting.first() {
        let _ = writeln!(text, "{DIM}read one: moothall review show {}{DIM:#}", first.id);
    }
    let report = json!({ "waiting": waiting.iter().map(|one| report_of(one)).collect::<Vec<_>>() });
    print_report(json, &report, &text)
}

fn show(opened: &OpenDraftStore, draft: &str, full: bool, json: bool) -> anyhow::Result<CliExit> {
    let files = opened.store.shown(&opened.reader(), id_of(draft)?).map_err(failed)?;
    let submission = files.first().and_then(|file| file.draft.submission.clone());
    let seal = submission.as_ref().map(|one| one.seal);
    let mut text = String::new();
    if let (Some(submission), Some(first)) = (&submission, files.first()) {
        let owner = display::line(&first.draft.owner.to_string());
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}  by {owner}", first.draft.state.as_str());
        if !submission.summary.is_empty() {
            let _ = writeln!(text, "summary by the worker: {}", display::line(&submission.summary));
        }
    }
    let hunks = SubmissionFile::hunks(&files);
    let mut hides_something = false;
    for file in &files {
        let side = |text: &Option<String>| text.clone().unwrap_or_default();
        let compare =
            if full { moothall_workspace::full_difference } else { moothall_workspace::difference };
        let difference = compare(&side(&file.base), &side(&file.after));
        hides_something |= difference.is_truncated();
        text.push_str(&render_file(file, &difference, &hunks));
    }
    if hides_something {
        // The seal is printed only if everything is shown, so that nobody approves content they did
        // not see.
        let _ = writeln!(
            text,
            "\n{YELLOW}some changed lines are cut{YELLOW:#}\n\
             {DIM}moothall review show {} --full shows them completely, with the seal{DIM:#}",
            display::line(draft)
        );
    } else if let Some(seal) = seal {
        let digits = seal.to_string();
        let _ = writeln!(
            text,
            "\nseal {BOLD}{}{BOLD:#}{}\n{DIM}moothall review approve {draft} --if-match {}{DIM:#}",
            &digits[..SEAL_DIGITS],
            &digits[SEAL_DIGITS..],
            &digits[..SEAL_DIGITS],
            draft = display::line(draft)
        );
        if hunks.len() > 1 {
            let _ = writeln!(
                text,
                "{DIM}moothall review hunks {} decides hunk by hunk{DIM:#}",
                display::line(draft)
            );
        }
    }
    let diff: String = files
        .iter()
        .map(|file| {
            let side = |text: &Option<String>| text.clone().unwrap_or_default();
            unified(file.draft.path.as_str(), &side(&file.base), &side(&file.after))
        })
        .collect();
    let drafts: Vec<_> = files.iter().map(|file| report_of(&file.draft)).collect();
    let rows: Vec<_> = hunks.iter().map(hunk_row).collect();
    let report = json!({ "seal": seal, "drafts": drafts, "diff": diff, "hunks": rows });
    print_report(json, &report, &text)
}

fn hunk_row(one: &SubmissionHunk) -> serde_json::Value {
    json!({
        "number": one.number,
        "hunk_id": one.hunk.id,
        "draft_id": one.draft,
        "kind": match one.hunk.kind {
            ReviewHunkKind::Create => "create",
            ReviewHunkKind::Delete => "delete",
            ReviewHunkKind::Rename => "rename",
            ReviewHunkKind::Mode => "mode",
            ReviewHunkKind::Lines(_) => "lines",
        },
    })
}

fn record_decision(
    opened: &OpenDraftStore,
    args: &ReviewArgs,
    decision_args: &ReviewDecisionArgs,
    decision: ReviewDecision,
    json: bool,
) -> anyhow::Result<CliExit> {
    let person = opened.person(args.by.as_deref())?;
    if decision == ReviewDecision::Approve {
        require_channel(opened)?;
    }
    let id = id_of(&decision_args.draft)?;
    let now = opened.store.status(&person, id).map_err(failed)?;
    let seal = expand_seal(&decision_args.seal, now.submission.as_ref().map(|one| one.seal))?;
    let drafts =
        opened.store.review(&person, id, seal, decision, &decision_args.reason).map_err(failed)?;
    print_decision(&drafts, json)
}

fn require_channel(opened: &OpenDraftStore) -> Result<(), CliError> {
    if opened.store.policy().channels.contains(&ReviewChannel::Cli) {
        return Ok(());
    }
    Err(CliError::usage("the policy does not allow approval on the command line")
        .with_hint("add `cli` to `channels` under `[review]` in the policy"))
}

fn print_decision(drafts: &[Draft], json: bool) -> anyhow::Result<CliExit> {
    // A part of a submission can be rejected when the rest of it is applied.
    let decided = drafts.iter().find(|draft| draft.state != DraftState::Rejected);
    let state = decided.or_else(|| drafts.first()).map_or(DraftState::Editing, |draft| draft.state);
    let report =
        json!({ "state": state, "drafts": drafts.iter().map(report_of).collect::<Vec<_>>() });
    let message = match state {
        DraftState::Applied => format!("{GREEN}applied{GREEN:#}\n"),
        DraftState::Conflict => {
            "conflict: the file has changed; the worker can rebase the draft\n".to_owned()
        }
        DraftState::Editing => "sent back to the worker\n".to_owned(),
        other => format!("{}\n", other.as_str()),
    };
    print_report(json, &report, &message)?;
    Ok(if state == DraftState::Conflict { CliExit::VerdictNegative } else { CliExit::Fine })
}

/// Expands a prefix of the current seal. A full seal is returned unchanged and rejected later if it
/// differs.
fn expand_seal(typed: &str, now: Option<Sha256Hex>) -> Result<Sha256Hex, CliError> {
    if let Some(seal) = Sha256Hex::parse(typed) {
        return Ok(seal);
    }
    let digits = typed.len() >= SEAL_DIGITS && typed.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits {
        return Err(CliError::usage(
            "invalid seal: expected 64 hexadecimal digits, or at least the first 12",
        )
        .with_hint("`moothall review show DRAFT` prints it"));
    }
    match now {
        Some(seal) if seal.to_string().starts_with(typed) => Ok(seal),
        _ => Err(CliError::usage("the draft changed since it was shown: its seal is different")
            .with_hint("review the current version: `moothall review show DRAFT`")),
    }
}

/// The diff of one file, with changed parts of lines highlighted, and findings and comments below
/// their lines. Hunks have numbers if there is more than one in the submission.
fn render_file(file: &SubmissionFile, difference: &DraftDiff, hunks: &[SubmissionHunk]) -> String {
    let (mut text, mut notes) = render_header(file);
    let numbers = hunks.len() > 1;
    let of_lines = file.hunks_of_diff(difference, hunks);
    let is_shown = |one: &&SubmissionHunk| of_lines.contains(&Some(*one));
    let of_file = hunks.iter().filter(|one| one.draft == file.draft.id);
    for one in of_file.filter(|one| numbers && !is_shown(one)) {
        let _ = writeln!(text, "{DIM}hunk {}: {}{DIM:#}", one.number, describe_hunk(file, one));
    }
    for (at, hunk) in difference.hunks.iter().enumerate() {
        match of_lines.get(at).copied().flatten() {
            Some(one) if numbers => {
                let _ = writeln!(text, "{DIM}hunk {}{DIM:#}", one.number);
            }
            _ if at > 0 => {
                let _ = writeln!(text, "{DIM}      ⋯{DIM:#}");
            }
            _ => {}
        }
        text.push_str(&hunk_lines(hunk, &mut notes));
    }
    for (line, notes) in notes.new {
        for note in notes {
            let _ = writeln!(text, "  {YELLOW}line {line}: {note}{YELLOW:#}");
        }
    }
    for (line, notes) in notes.old {
        for note in notes {
            let _ = writeln!(text, "  {YELLOW}line {line} before the change: {note}{YELLOW:#}");
        }
    }
    text
}

/// What a hunk does, without its lines.
fn describe_hunk(file: &SubmissionFile, one: &SubmissionHunk) -> String {
    let Draft { change, .. } = &file.draft;
    match &one.hunk.kind {
        ReviewHunkKind::Create => "creates the file".to_owned(),
        ReviewHunkKind::Delete => "deletes the file".to_owned(),
        ReviewHunkKind::Rename => {
            let to = change.rename_to.as_ref().map_or("", |to| to.as_str());
            format!("renames the file to {}", display::line(to))
        }
        ReviewHunkKind::Mode if change.file.is_some_and(|file| file.executable) => {
            "makes the file executable".to_owned()
        }
        ReviewHunkKind::Mode => "makes the file not executable".to_owned(),
        ReviewHunkKind::Lines(_) => "changes lines".to_owned(),
    }
}

/// Findings and comments that belong to lines.
#[derive(Debug, Default)]
struct LineNotes {
    /// By line of the draft.
    new: BTreeMap<usize, Vec<String>>,
    /// By line of the file before the change.
    old: BTreeMap<usize, Vec<String>>,
}

/// The name of a file and what is known about it as a whole.
fn render_header(file: &SubmissionFile) -> (String, LineNotes) {
    let draft = &file.draft;
    let path = display::line(draft.path.as_str());
    let mut text = match (&draft.base, &draft.change.file, &draft.change.rename_to) {
        (_, _, Some(to)) => format!("\n{BOLD}{path} → {}{BOLD:#}\n", display::line(to.as_str())),
        (None, _, _) => format!("\n{BOLD}{path}{BOLD:#} (new)\n"),
        (_, None, _) => format!("\n{BOLD}{path}{BOLD:#} (deleted)\n"),
        _ => format!("\n{BOLD}{path}{BOLD:#}\n"),
    };
    if let (Some(base), Some(after)) = (draft.base, draft.change.file)
        && base.executable != after.executable
    {
        let word = if after.executable { "becomes executable" } else { "is no longer executable" };
        let _ = writeln!(text, "  the file {word}");
    }
    let mut notes = LineNotes::default();
    let name = draft.change.rename_to.as_ref().unwrap_or(&draft.path);
    for one in draft.submission.iter().flat_map(|one| &one.findings) {
        if one.path != *name {
            continue;
        }
        let note = format!("{} {}: {}", one.action, one.rule, one.message);
        match one.line {
            Some(line) => notes.new.entry(line).or_default().push(note),
            None => {
                let _ = writeln!(text, "  {YELLOW}{note}{YELLOW:#}");
            }
        }
    }
    for one in draft.submission.iter().flat_map(|one| &one.comments) {
        let comment = &one.comment;
        if comment.path != *name && comment.path != draft.path {
            continue;
        }
        let note = format!("{}: {}", display::line(&one.by.id), display::line(&comment.text));
        let side = match comment.side {
            CommentSide::New => &mut notes.new,
            CommentSide::Old => &mut notes.old,
        };
        side.entry(comment.line).or_default().push(note);
    }
    (text, notes)
}

fn hunk_lines(hunk: &[DiffLine], notes: &mut LineNotes) -> String {
    let mut text = String::new();
    for line in hunk {
        let (sign, style) = match line.side {
            DiffSide::Removed => ('-', RED),
            DiffSide::Added => ('+', GREEN),
            DiffSide::Kept => (' ', Style::new()),
        };
        let number = line.new.or(line.old).unwrap_or(0);
        let mut shown = String::new();
        for part in &line.parts {
            let marked = if part.changed { style.bold().underline() } else { style };
            let _ = write!(shown, "{marked}{}{marked:#}", part.text);
        }
        if line.cut {
            let _ = write!(shown, "{DIM}… (line is longer){DIM:#}");
        }
        let _ = writeln!(text, "{DIM}{number:>5}{DIM:#} {style}{sign}{style:#} {shown}");
        if line.no_newline {
            let _ = writeln!(text, "        {DIM}\\ No newline at end of file{DIM:#}");
        }
        let of_draft = line.new.and_then(|at| notes.new.remove(&at)).unwrap_or_default();
        let of_file = line.old.and_then(|at| notes.old.remove(&at)).unwrap_or_default();
        for note in of_draft.into_iter().chain(of_file) {
            let _ = writeln!(text, "        {YELLOW}▲ {note}{YELLOW:#}");
        }
    }
    text
}

/// Colors an untrusted diff and escapes control characters.
pub(crate) fn painted(diff: &str) -> String {
    let mut text = String::new();
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => DIM,
            _ => Style::new(),
        };
        let cut: String = line.chars().take(LINE_CHARS).collect();
        let more = if cut.len() < line.len() { "… (line is longer)" } else { "" };
        let _ = writeln!(text, "{style}{}{style:#}{more}", text::escaped(&cut));
    }
    text
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
