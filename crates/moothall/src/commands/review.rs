//! `moothall review`: what waits for a person, shown as it is, and the person's word on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use moothall_core::Sha256Hex;
use moothall_core::drafts::{Draft, Say, State};
use moothall_core::gate::{Channel, unified};
use moothall_core::text;
use moothall_workspace::{Difference, ShownFile, Side};
use serde_json::json;

use super::draft::store::{Opened, failed, id_of, open};
use super::draft::{report_of, say};
use crate::args::{Global, ReviewArgs, ReviewCommand, ReviewSayArgs};
use crate::display;
use crate::error::{CliError, Exit};
use crate::terminal::{BOLD, DIM, GREEN, YELLOW};

const RED: Style = AnsiColor::Red.on_default();
/// Digits of a seal that a person types at least.
const SEAL_DIGITS: usize = 12;
/// Characters of a line that are shown; the rest is counted.
const LINE_CHARS: usize = 400;

pub(super) fn run(global: &Global, args: &ReviewArgs) -> anyhow::Result<Exit> {
    let opened = open(global, &args.flags)?;
    opened.warn_about_policy();
    let json = args.flags.json;
    match args.command.as_ref().unwrap_or(&ReviewCommand::List) {
        ReviewCommand::List => list(&opened, args, json),
        ReviewCommand::Show { draft, full } => show(&opened, args, draft, *full, json),
        ReviewCommand::Approve(said) => tell(&opened, args, said, Say::Approve, json),
        ReviewCommand::Reject(said) => tell(&opened, args, said, Say::Reject, json),
        ReviewCommand::SendBack(said) => tell(&opened, args, said, Say::SendBack, json),
    }
}

fn list(opened: &Opened, args: &ReviewArgs, json: bool) -> anyhow::Result<Exit> {
    let person = opened.person(args.by.as_deref())?;
    opened.store.tidy().map_err(failed)?;
    let all = opened.store.list(&person).map_err(failed)?;
    let waiting: Vec<&Draft> = all.iter().filter(|one| one.state == State::Escalated).collect();
    let mut text = String::new();
    if waiting.is_empty() {
        text.push_str("nothing waits for a person\n");
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
            let _ = writeln!(text, "  the worker says: {}", display::line(&submission.summary));
        }
        let rules: Vec<&str> = submission.findings.iter().map(|one| one.rule.name()).collect();
        let _ = writeln!(text, "  {YELLOW}{}{YELLOW:#}", rules.join(", "));
    }
    let report = json!({ "waiting": waiting.iter().map(|one| report_of(one)).collect::<Vec<_>>() });
    say(json, &report, &text)
}

fn show(
    opened: &Opened,
    args: &ReviewArgs,
    draft: &str,
    full: bool,
    json: bool,
) -> anyhow::Result<Exit> {
    let person = opened.person(args.by.as_deref())?;
    let files = opened.store.shown(&person, id_of(draft)?).map_err(failed)?;
    let submission = files.first().and_then(|file| file.draft.submission.clone());
    let seal = submission.as_ref().map(|one| one.seal);
    let mut text = String::new();
    if let (Some(submission), Some(first)) = (&submission, files.first()) {
        let owner = display::line(&first.draft.owner.to_string());
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}  by {owner}", first.draft.state.word());
        if !submission.summary.is_empty() {
            let _ = writeln!(text, "the worker says: {}", display::line(&submission.summary));
        }
    }
    let mut hides_something = false;
    for file in &files {
        let side = |text: &Option<String>| text.clone().unwrap_or_default();
        let compare = if full {
            moothall_workspace::whole_difference
        } else {
            moothall_workspace::difference
        };
        let difference = compare(&side(&file.base), &side(&file.after));
        hides_something |= difference.hides_something();
        text.push_str(&shown(file, &difference));
    }
    if hides_something {
        // The seal says what was shown. Without it nobody approves what they did not see.
        let _ = writeln!(
            text,
            "\n{YELLOW}lines that change are longer than what is shown{YELLOW:#}\n\
             {DIM}moothall review show {} --full shows all of them, and the seal{DIM:#}",
            display::line(draft)
        );
    } else if let Some(seal) = seal {
        let digits = seal.to_string();
        let _ = writeln!(
            text,
            "\nseal {BOLD}{}{BOLD:#}{}\n{DIM}moothall review approve {draft} --seal {}{DIM:#}",
            &digits[..SEAL_DIGITS],
            &digits[SEAL_DIGITS..],
            &digits[..SEAL_DIGITS],
            draft = display::line(draft)
        );
    }
    let diff: String = files
        .iter()
        .map(|file| {
            let side = |text: &Option<String>| text.clone().unwrap_or_default();
            unified(file.draft.path.as_str(), &side(&file.base), &side(&file.after))
        })
        .collect();
    let drafts: Vec<_> = files.iter().map(|file| report_of(&file.draft)).collect();
    say(json, &json!({ "seal": seal, "drafts": drafts, "diff": diff }), &text)
}

fn tell(
    opened: &Opened,
    args: &ReviewArgs,
    said: &ReviewSayArgs,
    word: Say,
    json: bool,
) -> anyhow::Result<Exit> {
    let person = opened.person(args.by.as_deref())?;
    if word == Say::Approve && !opened.store.policy().channels.contains(&Channel::Cli) {
        return Err(CliError::usage("the policy does not let people approve here")
            .with_hint("its `[review] channels` does not name `cli`")
            .into());
    }
    let id = id_of(&said.draft)?;
    let now = opened.store.status(&person, id).map_err(failed)?;
    let seal = whole_seal(&said.seal, now.submission.as_ref().map(|one| one.seal))?;
    let drafts = opened.store.review(&person, id, seal, word, &said.reason).map_err(failed)?;
    let state = drafts.first().map_or(State::Editing, |draft| draft.state);
    let report =
        json!({ "state": state, "drafts": drafts.iter().map(report_of).collect::<Vec<_>>() });
    let words = match state {
        State::Applied => format!("{GREEN}applied{GREEN:#}\n"),
        State::Conflict => {
            "conflict: the file has changed since; the worker may rebase\n".to_owned()
        }
        State::Editing => "sent back to its worker\n".to_owned(),
        other => format!("{}\n", other.word()),
    };
    say(json, &report, &words)?;
    Ok(if state == State::Conflict { Exit::VerdictNegative } else { Exit::Fine })
}

/// What a person typed stands for the seal that is there, if it is the beginning of it. Anything
/// else is taken as it is, and refused where it differs.
fn whole_seal(typed: &str, now: Option<Sha256Hex>) -> Result<Sha256Hex, CliError> {
    if let Some(seal) = Sha256Hex::parse(typed) {
        return Ok(seal);
    }
    let digits = typed.len() >= SEAL_DIGITS && typed.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits {
        return Err(CliError::usage("a seal is 64 hexadecimal digits, or the first 12 of them")
            .with_hint("`moothall review show DRAFT` prints it"));
    }
    match now {
        Some(seal) if seal.to_string().starts_with(typed) => Ok(seal),
        _ => Err(CliError::usage("the draft is not what was shown: its seal is another one now")
            .with_hint("look at it again: `moothall review show DRAFT`")),
    }
}

/// One file: its difference, changed parts of lines marked, findings below the lines they are
/// about.
fn shown(file: &ShownFile, difference: &Difference) -> String {
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
    let mut beside: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let name = draft.change.rename_to.as_ref().unwrap_or(&draft.path);
    for one in draft.submission.iter().flat_map(|one| &one.findings) {
        if one.path != *name {
            continue;
        }
        let words = format!("{} {}: {}", one.action, one.rule, one.message);
        match one.line {
            Some(line) => beside.entry(line).or_default().push(words),
            None => {
                let _ = writeln!(text, "  {YELLOW}{words}{YELLOW:#}");
            }
        }
    }
    text.push_str(&lines(difference, &mut beside));
    for (line, words) in beside {
        for one in words {
            let _ = writeln!(text, "  {YELLOW}line {line}: {one}{YELLOW:#}");
        }
    }
    text
}

fn lines(difference: &Difference, beside: &mut BTreeMap<usize, Vec<String>>) -> String {
    let mut text = String::new();
    for (at, hunk) in difference.hunks.iter().enumerate() {
        if at > 0 {
            let _ = writeln!(text, "{DIM}      ⋯{DIM:#}");
        }
        for line in hunk {
            let (sign, style) = match line.side {
                Side::Removed => ('-', RED),
                Side::Added => ('+', GREEN),
                Side::Kept => (' ', Style::new()),
            };
            let number = line.new.or(line.old).unwrap_or(0);
            let mut shown = String::new();
            for part in &line.parts {
                let marked = if part.changed { style.bold().underline() } else { style };
                let _ = write!(shown, "{marked}{}{marked:#}", part.text);
            }
            if line.cut {
                let _ = write!(shown, "{DIM}… (a longer line){DIM:#}");
            }
            let _ = writeln!(text, "{DIM}{number:>5}{DIM:#} {style}{sign}{style:#} {shown}");
            if line.no_newline {
                let _ = writeln!(text, "        {DIM}\\ No newline at end of file{DIM:#}");
            }
            for words in line.new.and_then(|at| beside.remove(&at)).unwrap_or_default() {
                let _ = writeln!(text, "        {YELLOW}▲ {words}{YELLOW:#}");
            }
        }
    }
    text
}

/// A difference that others made, with colour and without anything that drives a terminal.
pub(super) fn painted(diff: &str) -> String {
    let mut text = String::new();
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => DIM,
            _ => Style::new(),
        };
        let cut: String = line.chars().take(LINE_CHARS).collect();
        let more = if cut.len() < line.len() { "… (a longer line)" } else { "" };
        let _ = writeln!(text, "{style}{}{style:#}{more}", text::escaped(&cut));
    }
    text
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
