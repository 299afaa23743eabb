//! `moothall moves`: the moves of a consultation, and a person's say before they are debated.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use moothall_core::ErrorCode;
use moothall_core::RunKind;
use moothall_core::consult::{Change, MAX_CHANGES, Review, Tried, What};
use moothall_core::{NotCanonical, RunId, Sha256Hex};
use moothall_engine::RunRecord;
use moothall_store::RunRow;
use serde_json::{Value, json};

use super::consult::Reading;
use super::{found_run, runtime};
use crate::args::{EditedMove, Global, MovesArgs};
use crate::config::Loaded;
use crate::display;
use crate::error::{CliError, Exit};
use crate::local::{self, Local, open_and_find};
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::user_input;
use crate::{artifacts, config, logging};

/// The longest title in a table.
const TITLE_CHARS: usize = 60;

pub(super) fn run(global: &Global, args: &MovesArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let run_id = &row.run_id;
        refuse_others(&row)?;
        let undo = args.undo.then_some(Undo { seen: None });
        let wanted = Wanted { changes: changes(&loaded, args)?, undo };
        let Changed { record, reading, said } = change(&local, run_id, wanted).await?;
        if let Some(folder) = &args.write {
            write(&reading, folder)?;
        }
        match args.json {
            true => terminal::print(&format!("{:#}\n", report(&record, &reading, &said)?))?,
            false => terminal::print(&text(&record, &reading, &said))?,
        }
        Ok(Exit::Fine)
    })
}

/// What a person wants. Without anything they only look.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Each with the seal of the move that its author saw, where they say so.
    pub(super) changes: Vec<(Change, Option<Sha256Hex>)>,
    /// Takes back everything that was said before.
    pub(super) undo: Option<Undo>,
}

/// The wish to take everything back.
#[derive(Debug)]
pub(super) struct Undo {
    /// The seal of all changes that were seen, where somebody says so.
    pub(super) seen: Option<Sha256Hex>,
}

/// A run after a person changed its moves.
pub(super) struct Changed {
    record: RunRecord,
    reading: Reading,
    said: Vec<Change>,
}

impl Changed {
    pub(super) fn report(&self) -> Result<Value, CliError> {
        report(&self.record, &self.reading, &self.said)
    }
}

/// Only consultations have moves.
pub(super) fn refuse_others(row: &RunRow) -> Result<(), CliError> {
    if row.spec.is_kind(RunKind::Consult) {
        return Ok(());
    }
    Err(CliError::usage(format!("run {} is no consultation: it has no moves", row.run_id)))
}

/// Keeps changes with a run that waits for a review, or takes all of them back first. Without any it
/// only reads.
pub(super) async fn change(
    local: &Local,
    run_id: &RunId,
    wanted: Wanted,
) -> Result<Changed, CliError> {
    let store = &*local.store;
    let Wanted { changes, undo } = wanted;
    let is_change = !changes.is_empty() || undo.is_some();
    // Whoever drives the run could be telling it right now.
    let _lock = match is_change {
        true => Some(local.lock(run_id).await.map_err(found_run::unlocked)?),
        false => None,
    };
    let record = RunRecord::read(store, run_id).await.map_err(local::broken)?;
    if is_change {
        may_be_changed(&record)?;
    }
    let mut said = store.changes(run_id).await.map_err(local::broken)?;
    refuse_unseen(&record, &said, &changes, undo.as_ref())?;
    if undo.is_some() {
        said = Vec::new();
    }
    let changes: Vec<Change> = changes.into_iter().map(|(change, _)| change).collect();
    for change in &changes {
        fits(&record, &said, change)?;
        said.push(change.clone());
    }
    if undo.is_some() {
        store.forget_changes(run_id).await.map_err(local::broken)?;
    }
    if !changes.is_empty() {
        store.add_changes(run_id, changes).await.map_err(local::broken)?;
    }
    let reading = with(&record, said.clone())?;
    Ok(Changed { record, reading, said })
}

/// Nobody overwrites unread what somebody else said meanwhile.
fn refuse_unseen(
    record: &RunRecord,
    said: &[Change],
    changes: &[(Change, Option<Sha256Hex>)],
    undo: Option<&Undo>,
) -> Result<(), CliError> {
    let refused = |words: String| {
        CliError::usage(display::line(&words))
            .with_hint("look at it again, and change it from there")
            .with_code(ErrorCode::MoveChanged)
    };
    if let Some(seen) = undo.and_then(|undo| undo.seen.as_ref()) {
        let all = Review { changes: said.to_vec() };
        if all.seal().map_err(unsealed)? != *seen {
            return Err(refused("other changes were made than you saw".to_owned()));
        }
    }
    let sealed = |(change, seen): &(Change, Option<Sha256Hex>)| {
        Some((change.what.move_id()?.to_owned(), (*seen)?))
    };
    let seen: BTreeMap<String, Sha256Hex> = changes.iter().filter_map(sealed).collect();
    if seen.is_empty() {
        return Ok(());
    }
    for tried in with(record, said.to_vec())?.view.proceedings.moves.values() {
        if let Some(seal) = seen.get(&tried.proposed.move_id) {
            tried.refuse_unseen(seal).map_err(|unseen| refused(unseen.to_string()))?;
        }
    }
    Ok(())
}

fn unsealed(error: NotCanonical) -> CliError {
    CliError::failed("a change cannot be hashed").with_source(error)
}

/// What the flags say, in a fixed order: vetoes, edits, additions.
fn changes(
    loaded: &Loaded,
    args: &MovesArgs,
) -> Result<Vec<(Change, Option<Sha256Hex>)>, CliError> {
    let mut whats = Vec::new();
    let why = args.why.as_deref().map(str::trim).unwrap_or_default();
    for move_id in &args.veto {
        whats.push((What::Veto { move_id: move_id.clone(), why: why.to_owned() }, None));
    }
    for EditedMove { move_id, file } in &args.edit {
        let (proposal, seal) = user_input::one_move(file)?;
        whats.push((What::Edit { move_id: move_id.clone(), proposal }, seal));
    }
    for file in &args.add {
        let added = user_input::moves(file)?;
        whats.extend(added.into_iter().map(|proposal| (What::Add { proposal }, None)));
    }
    if whats.is_empty() {
        return Ok(Vec::new());
    }
    let by = user_input::who(loaded, args.by.as_deref(), "changes the moves")?;
    let at_ms = moothall_store::now_ms();
    let said = |(what, seen)| (Change { by: by.clone(), at_ms, what }, seen);
    Ok(whats.into_iter().map(said).collect())
}

fn may_be_changed(record: &RunRecord) -> Result<(), CliError> {
    let id = local::short(&record.row.run_id);
    if record.waits_for_person() {
        return Ok(());
    }
    let refused = CliError::usage(format!("run {id} does not wait for a person"));
    let kept = record.consult_input();
    let asks = kept.is_some_and(|input| input.terms.pause_after_moves);
    Err(if !asks {
        refused.with_hint("a consultation with `--pause-after moves` does, before the debates")
    } else if record.was_reviewed() {
        refused.with_hint("its moves were reviewed, and it went on")
    } else {
        refused.with_hint(format!(
            "it has not come to its moves yet: `moothall resume {id}` lets it go on until then"
        ))
    })
}

/// Refuses what the run would leave out.
fn fits(record: &RunRecord, before: &[Change], change: &Change) -> Result<(), CliError> {
    if let Some(fault) = change.fault() {
        return Err(CliError::usage(fault));
    }
    if before.len() >= MAX_CHANGES {
        return Err(CliError::usage(format!("{MAX_CHANGES} changes are the most"))
            .with_hint("`--undo` takes all of them back"));
    }
    let mut after = before.to_vec();
    after.push(change.clone());
    let (old, new) = (with(record, before.to_vec())?, with(record, after)?);
    let ignored = |reading: &Reading| reading.view.proceedings.ignored_changes.clone();
    match ignored(&new).get(ignored(&old).len()) {
        None => Ok(()),
        Some(found) => {
            let refused = match change.what.move_id() {
                Some(move_id) => {
                    CliError::usage(format!("there is no move `{}`", display::line(move_id)))
                }
                None => CliError::usage(display::line(&found.message)),
            };
            let ids: Vec<&str> = old.view.moves().map(|one| one.move_id.as_str()).collect();
            Err(refused.with_hint(display::line(&format!("there are {}", ids.join(", ")))))
        }
    }
}

/// The run as it is after a review with these changes, as far as it goes: the same code that the
/// run itself goes through. A run that does not wait is shown as it is.
fn with(record: &RunRecord, changes: Vec<Change>) -> Result<Reading, CliError> {
    if !record.waits_for_person() {
        return Reading::of(record);
    }
    Reading::of(&record.reviewed(Review { changes }))
}

fn write(reading: &Reading, folder: &Path) -> Result<(), CliError> {
    let mut files = BTreeMap::new();
    for tried in reading.view.proceedings.moves.values() {
        let one = &tried.proposed;
        let name = format!("{}.toml", one.move_id);
        let path = name.parse().map_err(|_| {
            CliError::failed(format!("`{}` is not the name of a file", display::line(&name)))
        })?;
        let head = format!("{} by {}", one.move_id, one.analyst);
        let seal = tried.seal().map_err(unsealed)?;
        files.insert(path, user_input::file_of(&head, &one.proposal, &seal)?.into_bytes());
    }
    let written = artifacts::write(folder, &files)?;
    written.note_left_out();
    let (many, folder) = (written.written.len(), folder.display());
    terminal::note(&format!("{DIM}wrote {many} moves into {folder}{DIM:#}\n"));
    Ok(())
}

fn report(record: &RunRecord, reading: &Reading, said: &[Change]) -> Result<Value, CliError> {
    let moves = reading.view.proceedings.moves.values().map(|tried| {
        Ok(json!({
            "move_id": tried.proposed.move_id,
            "analyst": tried.proposed.analyst,
            "title": tried.proposed.proposal.title,
            "proposal": tried.proposed.proposal,
            "said": tried.said,
            "seal": tried.seal().map_err(unsealed)?,
            "support": tried.check.support,
            "findings": tried.check.findings,
            "similar_to": tried.similar_to,
        }))
    });
    let all = Review { changes: said.to_vec() };
    Ok(json!({
        "run_id": record.row.run_id,
        "waits_for_person": record.waits_for_person(),
        "moves": moves.collect::<Result<Vec<_>, CliError>>()?,
        "changes": said,
        "seal": all.seal().map_err(unsealed)?,
    }))
}

fn text(record: &RunRecord, reading: &Reading, said: &[Change]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_text(&mut text, record, reading, said);
    text
}

fn write_text(
    text: &mut String,
    record: &RunRecord,
    reading: &Reading,
    said: &[Change],
) -> std::fmt::Result {
    let id = local::short(&record.row.run_id);
    let moves = &reading.view.proceedings.moves;
    if moves.is_empty() {
        return writeln!(text, "no analyst has proposed a move yet");
    }
    let wide = moves.values().map(|one| one.proposed.analyst.len()).max().unwrap_or(0).max(6);
    writeln!(text, "{BOLD}{:<5} {:<wide$}  {:<8} title{BOLD:#}", "move", "author", "numbers")?;
    for tried in moves.values() {
        let one = &tried.proposed;
        let support = tried.check.support;
        writeln!(
            text,
            "{:<5} {:<wide$}  {:<8} {}",
            one.move_id,
            display::line(&one.analyst),
            format!("{}/{}", support.supported, support.total),
            display::cut(&one.proposal.title, TITLE_CHARS)
        )?;
        let indent = 5 + 1 + wide + 2 + 8 + 1;
        for mark in marks(tried) {
            writeln!(text, "{:indent$}{YELLOW}{mark}{YELLOW:#}", "")?;
        }
    }
    if !record.waits_for_person() {
        return Ok(());
    }
    let are = match said.len() {
        0 => "nothing is changed".to_owned(),
        1 => "1 change is kept with the run".to_owned(),
        many => format!("{many} changes are kept with the run"),
    };
    writeln!(text, "\n{are}; let the debates begin: moothall resume {id}")?;
    writeln!(
        text,
        "{DIM}one move in full: moothall show {id} --move m1\n\
         to change: moothall moves {id} --veto m3 --why TEXT, --edit m5=FILE, --add FILE; files to \
         edit: --write DIR{DIM:#}"
    )
}

fn marks(tried: &Tried) -> Vec<String> {
    let mut marks: Vec<String> =
        tried.said.iter().map(|said| display::line(&said.words())).collect();
    if tried.is_vetoed() {
        return marks;
    }
    marks.extend(tried.check.findings.iter().map(display::finding));
    if !tried.similar_to.is_empty() {
        let like: Vec<&str> = tried.similar_to.iter().map(String::as_str).collect();
        marks.push(display::line(&format!("says nearly the same as {}", like.join(", "))));
    }
    marks
}
