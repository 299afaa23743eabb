//! Approves a part of a submission or an edited version of it, and comments on lines, without
//! questions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use moothall_core::drafts::{CommentSide, DraftId, JournalFinding, LineComment, RelPath};
use moothall_core::gate::GateFinding;
use moothall_workspace::{
    AmendReport, AmendResult, DraftCaller, FileAmendment, SubmissionFile, SubmissionHunk,
};
use serde_json::json;

use super::{expand_seal, print_decision, require_channel};
use crate::args::{ReviewApproveArgs, ReviewArgs, ReviewCommentArgs};
use crate::commands::draft::store::{OpenDraftStore, failed, id_of};
use crate::commands::draft::{print_report, report_of, text_of};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{BOLD, DIM, YELLOW};

pub(crate) fn approve(
    opened: &OpenDraftStore,
    args: &ReviewArgs,
    approve: &ReviewApproveArgs,
    json: bool,
) -> anyhow::Result<CliExit> {
    let decision = &approve.decision;
    let person = opened.person(args.by.as_deref())?;
    require_channel(opened)?;
    let id = id_of(&decision.draft)?;
    let content = approve.content.as_deref().map(text_of).transpose()?;
    let files = opened.store.shown(&person, id).map_err(failed)?;
    let shown = files.first().and_then(|file| Some(file.draft.submission.as_ref()?.seal));
    let seal = expand_seal(&decision.seal, shown)?;
    let amendments = match content {
        Some(text) => BTreeMap::from([(id, FileAmendment::content(text))]),
        None => select(&files, &approve.hunks.iter().copied().collect())?,
    };
    let confirm = approve.confirm.as_deref().map(|typed| Confirmation(typed.to_owned()));
    let mut result = opened
        .store
        .amend(&person, id, seal, &amendments, None, &decision.reason)
        .map_err(failed)?;
    if let (AmendResult::Unconfirmed(report), Some(confirm)) = (&result, confirm) {
        let confirmed = Some(confirm.of(report)?);
        result = opened
            .store
            .amend(&person, id, seal, &amendments, confirmed, &decision.reason)
            .map_err(failed)?;
    }
    match result {
        AmendResult::Decided(drafts) => print_decision(&drafts, json),
        AmendResult::Unconfirmed(report) => {
            let digits = report.confirm.to_string();
            let text = format!(
                "{}hint: to apply it anyway, add `--confirm {}`\n",
                unconfirmed_text(&report),
                &digits[..super::SEAL_DIGITS]
            );
            print_report(json, &report_json("unconfirmed", &report), &text)?;
            Ok(CliExit::NeedsPerson)
        }
        AmendResult::Rejected(report) => {
            print_report(json, &report_json("rejected", &report), &rejected_text(&report))?;
            Ok(CliExit::VerdictNegative)
        }
    }
}

/// A seal that was typed, in full or its beginning.
struct Confirmation(String);

impl Confirmation {
    fn of(&self, report: &AmendReport) -> Result<moothall_core::Sha256Hex, CliError> {
        expand_seal(&self.0, Some(report.confirm)).map_err(|_| {
            CliError::usage("`--confirm` does not match the result")
                .with_hint("run the command without `--confirm` to see the findings")
        })
    }
}

/// Selects hunks by number. Files without a selected hunk are rejected.
pub(crate) fn select(
    files: &[SubmissionFile],
    numbers: &BTreeSet<usize>,
) -> Result<BTreeMap<DraftId, FileAmendment>, CliError> {
    let hunks = SubmissionFile::hunks(files);
    if let Some(unknown) = numbers.iter().find(|number| !(1..=hunks.len()).contains(*number)) {
        let count = display::counted(hunks.len(), "hunk");
        return Err(CliError::usage(format!("no hunk {unknown}: the submission has {count}"))
            .with_hint("`moothall review show DRAFT` prints the numbers"));
    }
    let of_file = |file: &SubmissionFile| {
        let is_chosen =
            |one: &&SubmissionHunk| one.draft == file.draft.id && numbers.contains(&one.number);
        let chosen = hunks.iter().filter(is_chosen).map(|one| one.hunk.id);
        (file.draft.id, FileAmendment::Hunks(chosen.collect()))
    };
    Ok(files.iter().map(of_file).collect())
}

/// Findings that the reviewer has not seen yet.
pub(crate) fn unconfirmed_text(report: &AmendReport) -> String {
    let mut text =
        format!("{BOLD}nothing was applied{BOLD:#}: the gate has new findings about the result\n");
    for JournalFinding { rule, action, path, message, .. } in &report.unconfirmed {
        let path = display::line(path.as_str());
        let _ = writeln!(text, "  {YELLOW}{action} {rule}{YELLOW:#} {path}: {message}");
    }
    text
}

pub(crate) fn rejected_text(report: &AmendReport) -> String {
    let mut text = format!("{BOLD}nothing was applied{BOLD:#}: the gate rejects the result\n");
    let verdict = &report.judged.verdict;
    let decisive = verdict.findings.iter().filter(|one| one.action >= verdict.action);
    for GateFinding { rule, action, path, message, .. } in decisive {
        let path = display::line(path.as_str());
        let _ = writeln!(text, "  {YELLOW}{action} {rule}{YELLOW:#} {path}: {message}");
    }
    let _ = writeln!(text, "{DIM}the draft still needs review{DIM:#}");
    text
}

fn report_json(state: &str, report: &AmendReport) -> serde_json::Value {
    json!({
        "state": state,
        "result_seal": report.seal,
        "confirm": report.confirm,
        "verdict": report.judged.verdict,
        "unconfirmed": report.unconfirmed,
        "checks": report.judged.checks,
        "diff": report.judged.diff,
    })
}

pub(crate) fn comment(
    opened: &OpenDraftStore,
    args: &ReviewArgs,
    comment: &ReviewCommentArgs,
    json: bool,
) -> anyhow::Result<CliExit> {
    let person = opened.person(args.by.as_deref())?;
    let id = id_of(&comment.draft)?;
    let draft = opened.store.status(&person, id).map_err(failed)?;
    let seal = expand_seal(&comment.seal, draft.submission.as_ref().map(|one| one.seal))?;
    let path = match &comment.path {
        Some(path) => RelPath::parse(path).map_err(|fault| CliError::usage(fault.to_string()))?,
        None => draft.path,
    };
    let side = if comment.old { CommentSide::Old } else { CommentSide::New };
    let comment = LineComment { path, side, line: comment.line, text: comment.text.clone() };
    let drafts = opened.store.comment(&person, id, seal, vec![comment]).map_err(comment_failed)?;
    let report = json!({ "drafts": drafts.iter().map(report_of).collect::<Vec<_>>() });
    print_report(json, &report, "commented\n")
}

pub(crate) fn comment_failed(error: moothall_workspace::DraftError) -> CliError {
    let is_input = matches!(error, moothall_workspace::DraftError::Input(_));
    let error = failed(error);
    match is_input {
        true => error.with_hint("`moothall review show DRAFT` prints the lines with their numbers"),
        false => error,
    }
}

/// Approves with answers of a person, who confirms new findings in the terminal.
pub(crate) fn amend_confirmed(
    opened: &OpenDraftStore,
    person: &DraftCaller,
    id: DraftId,
    seal: moothall_core::Sha256Hex,
    amendments: &BTreeMap<DraftId, FileAmendment>,
    mut confirm: impl FnMut(&AmendReport) -> anyhow::Result<bool>,
) -> anyhow::Result<AmendResult> {
    let amend = |confirmed| opened.store.amend(person, id, seal, amendments, confirmed, "");
    let result = amend(None).map_err(failed)?;
    match result {
        AmendResult::Unconfirmed(report) if confirm(&report)? => {
            Ok(amend(Some(report.confirm)).map_err(failed)?)
        }
        result => Ok(result),
    }
}
