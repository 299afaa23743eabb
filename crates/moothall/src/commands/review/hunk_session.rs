//! `moothall review hunks`: asks about each hunk of a submission, like `git add -p`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    CommentSide, DraftId, DraftState, LineComment, ReviewDecision, ReviewHunkKind,
};
use moothall_core::text;
use moothall_workspace::{
    AmendReport, AmendResult, DraftCaller, FileAmendment, SubmissionFile, SubmissionHunk,
    full_difference,
};

use super::editor::edit_text;
use super::partial::{amend_confirmed, comment_failed, rejected_text, select, unconfirmed_text};
use super::{
    LineNotes, describe_hunk, hunk_lines, painted, print_decision, render_header, require_channel,
};
use crate::args::ReviewArgs;
use crate::commands::draft::store::{OpenDraftStore, failed, id_of};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM};

const HELP: &str = "\
y - approve this hunk
n - reject this hunk
a - approve this hunk and all later ones
d - reject this hunk and all later ones
k - go back to the previous hunk
e - edit the proposed content of this file in $VISUAL or $EDITOR
c - comment on a line; the worker reads the comment
q - quit; nothing is decided
? - show this help
Nothing is applied before you confirm the result.
";

pub(crate) fn run(
    opened: &OpenDraftStore,
    args: &ReviewArgs,
    draft: &str,
) -> anyhow::Result<CliExit> {
    let shown_id = display::line(draft);
    if args.flags.json || !io::stdin().is_terminal() || !terminal::stdout_is_terminal() {
        return Err(CliError::usage("`review hunks` asks questions, so it needs a terminal")
            .with_hint(format!(
                "`moothall review show {shown_id}` prints the hunks with their numbers, \
                 `moothall review approve {shown_id} --if-match SEAL --hunks 1,3` approves some"
            ))
            .into());
    }
    let person = opened.person(args.by.as_deref())?;
    let id = id_of(draft)?;
    let files = opened.store.shown(&person, id).map_err(failed)?;
    let submission = files.first().and_then(|file| file.draft.submission.clone());
    let state = files.first().map(|file| file.draft.state);
    let Some(submission) = submission.filter(|_| state == Some(DraftState::Escalated)) else {
        return Err(CliError::usage("the draft does not need review")
            .with_hint("`moothall review list` shows the drafts that need review")
            .into());
    };
    let hunks = SubmissionFile::hunks(&files);
    if !submission.summary.is_empty() {
        let summary = display::line(&submission.summary);
        terminal::print(&format!("summary by the worker: {summary}\n"))?;
    }
    let mut session = HunkSession {
        opened,
        person,
        id,
        seal: submission.seal,
        answers: vec![None; hunks.len()],
        edits: BTreeMap::new(),
        files,
        hunks,
    };
    match session.ask_all()? {
        SessionEnd::Asked => session.conclude(),
        SessionEnd::Quit => quit(),
    }
}

fn quit() -> anyhow::Result<CliExit> {
    terminal::print("nothing was decided; the draft still needs review\n")?;
    Ok(CliExit::NeedsPerson)
}

/// How the questions ended.
enum SessionEnd {
    Asked,
    Quit,
}

/// One walk over the hunks of a submission. Nothing but comments is recorded before the end.
struct HunkSession<'a> {
    opened: &'a OpenDraftStore,
    person: DraftCaller,
    id: DraftId,
    /// Everything that was shown.
    seal: Sha256Hex,
    files: Vec<SubmissionFile>,
    hunks: Vec<SubmissionHunk>,
    /// Whether each hunk is approved, as far as it was asked about.
    answers: Vec<Option<bool>>,
    /// Files that the reviewer edited; their hunks are not asked about.
    edits: BTreeMap<DraftId, FileAmendment>,
}

impl HunkSession<'_> {
    fn ask_all(&mut self) -> anyhow::Result<SessionEnd> {
        let mut at = 0;
        let mut shown = None;
        while at < self.hunks.len() {
            let one = &self.hunks[at];
            if self.edits.contains_key(&one.draft) {
                at += 1;
                continue;
            }
            if shown != Some(at) {
                terminal::print(&self.render(at))?;
                shown = Some(at);
            }
            let total = self.hunks.len();
            let question =
                format!("{BOLD}hunk {} of {total}: approve?{BOLD:#} [y,n,a,d,k,e,c,q,?] ", at + 1);
            let Some(answer) = ask(&question)? else { return Ok(SessionEnd::Quit) };
            match answer.as_str() {
                "y" | "n" => {
                    self.answers[at] = Some(answer == "y");
                    at += 1;
                }
                "a" | "d" => {
                    self.answers[at..].fill(Some(answer == "a"));
                    at = total;
                }
                "k" => {
                    at = at.saturating_sub(1);
                    shown = None;
                    // An edit is taken back by going back to it.
                    self.edits.remove(&self.hunks[at].draft);
                }
                "e" => self.edit(at)?,
                "c" => self.comment(at)?,
                "q" => return Ok(SessionEnd::Quit),
                _ => terminal::print(HELP)?,
            }
        }
        Ok(SessionEnd::Asked)
    }

    fn file(&self, at: usize) -> &SubmissionFile {
        let draft = self.hunks[at].draft;
        let found = self.files.iter().position(|file| file.draft.id == draft);
        &self.files[found.unwrap_or(0)]
    }

    /// A hunk with everything of its file that is not in another hunk. Lines are never cut.
    fn render(&self, at: usize) -> String {
        let (one, file) = (&self.hunks[at], self.file(at));
        let (header, mut notes) = render_header(file);
        let is_first = at == 0 || self.hunks[at - 1].draft != one.draft;
        let mut text = if is_first { header } else { String::new() };
        let whole = String::new();
        let difference = full_difference(
            file.base.as_ref().unwrap_or(&whole),
            file.after.as_ref().unwrap_or(&whole),
        );
        if !matches!(one.hunk.kind, ReviewHunkKind::Lines(_)) {
            let _ = writeln!(text, "{DIM}hunk {}: {}{DIM:#}", at + 1, describe_hunk(file, one));
        }
        let of_lines = file.hunks_of_diff(&difference, &self.hunks);
        let is_whole = matches!(one.hunk.kind, ReviewHunkKind::Create | ReviewHunkKind::Delete);
        for (hunk, number) in difference.hunks.iter().zip(&of_lines) {
            let is_this = match number {
                Some(number) => *number == one,
                None => is_whole || matches!(one.hunk.kind, ReviewHunkKind::Lines(_)),
            };
            if is_this {
                text.push_str(&hunk_lines(hunk, &mut notes));
            }
        }
        text
    }

    /// Replaces the proposed content of the hunk's file by what the reviewer writes. Hunks that were
    /// rejected before are not part of it.
    fn edit(&mut self, at: usize) -> anyhow::Result<()> {
        let file = self.file(at);
        let (draft, path) = (file.draft.id, file.draft.path.clone());
        let base = file.base.clone().unwrap_or_default();
        let of_file = self.hunks.iter().zip(&self.answers).filter(|(one, _)| one.draft == draft);
        let approved: BTreeSet<Sha256Hex> = of_file
            .filter(|(_, answer)| **answer != Some(false))
            .map(|(one, _)| one.hunk.id)
            .collect();
        let start = file.proposal().with_hunks(&approved)?.file;
        let proposed = start.map(|file| file.text).unwrap_or_default();
        let edited = match edit_text(&path, &proposed) {
            Ok(edited) => edited,
            Err(error) => {
                terminal::show_error(&error);
                return Ok(());
            }
        };
        if edited == proposed {
            terminal::print("not changed\n")?;
            return Ok(());
        }
        // What is applied is what is shown here, also if the editor displayed it differently.
        let shown = display::line(path.as_str());
        let mut text = format!("{BOLD}your version of {shown}{BOLD:#}\n");
        for hunk in &full_difference(&base, &edited).hunks {
            text.push_str(&hunk_lines(hunk, &mut LineNotes::default()));
        }
        terminal::print(&text)?;
        let edit = FileAmendment::Content { text: edited, approved: Some(approved) };
        self.edits.insert(draft, edit);
        Ok(())
    }

    fn comment(&self, at: usize) -> anyhow::Result<()> {
        let question = "line (with `-` before it for a removed line): ";
        let Some(typed) = ask(question)? else { return Ok(()) };
        let (side, digits) = match typed.strip_prefix('-') {
            Some(digits) => (CommentSide::Old, digits),
            None => (CommentSide::New, typed.as_str()),
        };
        let Ok(line) = digits.parse::<usize>() else {
            terminal::print("no comment: expected the number of a line\n")?;
            return Ok(());
        };
        let Some(comment) = ask("comment: ")? else { return Ok(()) };
        let path = self.file(at).draft.path.clone();
        let comment = LineComment { path, side, line, text: comment };
        let recorded = self.opened.store.comment(&self.person, self.id, self.seal, vec![comment]);
        match recorded {
            Ok(_) => terminal::print("commented\n")?,
            Err(error) => terminal::show_error(&comment_failed(error)),
        }
        Ok(())
    }

    fn conclude(&self) -> anyhow::Result<CliExit> {
        let approved: BTreeSet<usize> = self
            .hunks
            .iter()
            .zip(&self.answers)
            .filter(|(one, answer)| **answer == Some(true) && !self.edits.contains_key(&one.draft))
            .map(|(one, _)| one.number)
            .collect();
        let mut amendments = select(&self.files, &approved)?;
        amendments.extend(self.edits.clone());
        let can_apply = !approved.is_empty() || !self.edits.is_empty();
        let asked: usize =
            self.hunks.iter().filter(|one| !self.edits.contains_key(&one.draft)).count();
        let mut parts = Vec::new();
        if asked > 0 {
            parts.push(format!("{} of {asked} hunks approved", approved.len()));
        }
        if !self.edits.is_empty() {
            parts.push(format!("{} edited", display::counted(self.edits.len(), "file")));
        }
        let summary = parts.join(", ");
        let keys = match can_apply {
            true => "apply [y], send back [s], reject all [r] or quit [q]? ",
            false => "send back [s], reject all [r] or quit [q]? ",
        };
        loop {
            let Some(answer) = ask(&format!("{BOLD}{summary}{BOLD:#}: {keys}"))? else {
                return quit();
            };
            match answer.as_str() {
                "y" if can_apply => return self.apply(&amendments),
                "s" => return self.decide(ReviewDecision::SendBack),
                "r" => return self.decide(ReviewDecision::Reject),
                "q" => return quit(),
                _ => {}
            }
        }
    }

    fn decide(&self, decision: ReviewDecision) -> anyhow::Result<CliExit> {
        let Some(reason) = ask("reason: ")? else { return quit() };
        let store = &self.opened.store;
        let drafts =
            store.review(&self.person, self.id, self.seal, decision, &reason).map_err(failed)?;
        print_decision(&drafts, false)
    }

    fn apply(&self, amendments: &BTreeMap<DraftId, FileAmendment>) -> anyhow::Result<CliExit> {
        require_channel(self.opened)?;
        let confirm = |report: &AmendReport| {
            terminal::print(&painted(&report.judged.diff))?;
            terminal::print(&unconfirmed_text(report))?;
            Ok(ask("apply it anyway [y/N]? ")?.as_deref() == Some("y"))
        };
        let (person, id, seal) = (&self.person, self.id, self.seal);
        match amend_confirmed(self.opened, person, id, seal, amendments, confirm)? {
            AmendResult::Decided(drafts) => print_decision(&drafts, false),
            AmendResult::Unconfirmed(_) => quit(),
            AmendResult::Rejected(report) => {
                terminal::print(&rejected_text(&report))?;
                Ok(CliExit::VerdictNegative)
            }
        }
    }
}

/// Asks a question. `None` at the end of the input, as after Ctrl-D.
fn ask(question: &str) -> anyhow::Result<Option<String>> {
    terminal::show(question);
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        terminal::show("\n");
        return Ok(None);
    }
    Ok(Some(text::sanitize_line(line.trim()).trim().to_owned()))
}
