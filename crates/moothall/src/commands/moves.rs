//! `moothall moves`: shows the moves of a consultation and changes them before the debates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use moothall_core::ErrorCode;
use moothall_core::RunKind;
use moothall_core::consult::{MAX_CHANGES, MoveRecord, MoveReview, ReviewAction, ReviewChange};
use moothall_core::{CanonicalJsonError, RunId, Sha256Hex};
use moothall_engine::RunRecord;
use moothall_store::RunRow;
use serde_json::{Value, json};

use super::consult::StoredConsultation;
use super::{resumable_run, runtime};
use crate::args::{GlobalArgs, MoveEditArg, MovesArgs};
use crate::config::LoadedConfig;
use crate::display;
use crate::display::table::{Table, TableColumn};
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore, open_and_find};
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::user_input;
use crate::{artifacts, config, logging};

/// Longer titles are cut in tables.
const TITLE_CHARS: usize = 60;

pub(crate) fn run(global: &GlobalArgs, args: &MovesArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let run_id = &row.run_id;
        ensure_consultation(&row)?;
        let undo = args.undo.then_some(UndoRequest { seen: None });
        let edit_request = MoveEditRequest { changes: changes(&loaded, args)?, undo };
        let MoveEditResult { record, consultation, said } =
            change(&local, run_id, edit_request).await?;
        if let Some(folder) = &args.write {
            write(&consultation, folder)?;
        }
        match args.json {
            true => terminal::print(&format!("{:#}\n", report(&record, &consultation, &said)?))?,
            false => terminal::print(&text(&record, &consultation, &said))?,
        }
        Ok(CliExit::Fine)
    })
}

/// Requested changes. Without any, the moves are only read.
#[derive(Debug, Default)]
pub(crate) struct MoveEditRequest {
    /// Each with the seal of the move that its author saw, if known.
    pub(crate) changes: Vec<(ReviewChange, Option<Sha256Hex>)>,
    /// Removes all earlier changes.
    pub(crate) undo: Option<UndoRequest>,
}

#[derive(Debug)]
pub(crate) struct UndoRequest {
    /// The seal of all changes that the user saw, if known.
    pub(crate) seen: Option<Sha256Hex>,
}

pub(crate) struct MoveEditResult {
    record: RunRecord,
    consultation: StoredConsultation,
    said: Vec<ReviewChange>,
}

impl MoveEditResult {
    pub(crate) fn report(&self) -> Result<Value, CliError> {
        report(&self.record, &self.consultation, &self.said)
    }
}

/// Only consultations have moves.
pub(crate) fn ensure_consultation(row: &RunRow) -> Result<(), CliError> {
    if row.spec.is_kind(RunKind::Consult) {
        return Ok(());
    }
    Err(run_store::not_a_consultation(&row.run_id))
}

/// Saves changes to a run that waits for review, after removing earlier ones if `undo` is set.
/// Without changes it only reads.
pub(crate) async fn change(
    local: &RunStore,
    run_id: &RunId,
    edit_request: MoveEditRequest,
) -> Result<MoveEditResult, CliError> {
    let store = &*local.store;
    let MoveEditRequest { changes, undo } = edit_request;
    let is_change = !changes.is_empty() || undo.is_some();
    // The lock prevents a process from resuming the run at the same time.
    let _lock = match is_change {
        true => Some(local.lock(run_id).await.map_err(resumable_run::lock_error)?),
        false => None,
    };
    let record = RunRecord::read(store, run_id).await.map_err(run_store::store_error)?;
    if is_change {
        ensure_changeable(&record)?;
    }
    let mut said = store.changes(run_id).await.map_err(run_store::store_error)?;
    check_version(&record, &said, &changes, undo.as_ref())?;
    if undo.is_some() {
        said = Vec::new();
    }
    let changes: Vec<ReviewChange> = changes.into_iter().map(|(change, _)| change).collect();
    for change in &changes {
        ensure_applicable(&record, &said, change)?;
        said.push(change.clone());
    }
    if undo.is_some() {
        store.forget_changes(run_id).await.map_err(run_store::store_error)?;
    }
    if !changes.is_empty() {
        store.add_changes(run_id, changes).await.map_err(run_store::store_error)?;
    }
    let consultation = apply_changes(&record, said.clone())?;
    Ok(MoveEditResult { record, consultation, said })
}

/// Prevents overwriting changes that another person made in the meantime.
fn check_version(
    record: &RunRecord,
    said: &[ReviewChange],
    changes: &[(ReviewChange, Option<Sha256Hex>)],
    undo: Option<&UndoRequest>,
) -> Result<(), CliError> {
    let refused = |message: String| {
        CliError::usage(display::line(&message))
            .with_hint("review the current moves and make the change again")
            .with_code(ErrorCode::MoveChanged)
    };
    if let Some(seen) = undo.and_then(|undo| undo.seen.as_ref()) {
        let all = MoveReview { changes: said.to_vec() };
        if all.seal().map_err(unsealed)? != *seen {
            return Err(refused("the saved changes differ from those you saw".to_owned()));
        }
    }
    let sealed = |(change, seen): &(ReviewChange, Option<Sha256Hex>)| {
        Some((change.what.move_id()?.to_owned(), (*seen)?))
    };
    let seen: BTreeMap<String, Sha256Hex> = changes.iter().filter_map(sealed).collect();
    if seen.is_empty() {
        return Ok(());
    }
    for move_record in apply_changes(record, said.to_vec())?.view.proceedings.moves.values() {
        if let Some(seal) = seen.get(&move_record.proposed.move_id) {
            move_record.check_version(seal).map_err(|unseen| refused(unseen.to_string()))?;
        }
    }
    Ok(())
}

fn unsealed(error: CanonicalJsonError) -> CliError {
    CliError::failed("cannot hash a change").with_source(error)
}

/// Changes from the flags, in a fixed order: vetoes, edits, additions.
fn changes(
    loaded: &LoadedConfig,
    args: &MovesArgs,
) -> Result<Vec<(ReviewChange, Option<Sha256Hex>)>, CliError> {
    let mut actions = Vec::new();
    let why = args.why.as_deref().map(str::trim).unwrap_or_default();
    for move_id in &args.veto {
        actions.push((ReviewAction::Veto { move_id: move_id.clone(), why: why.to_owned() }, None));
    }
    for MoveEditArg { move_id, file } in &args.edit {
        let (proposal, seal) = user_input::one_move(file)?;
        actions.push((ReviewAction::Edit { move_id: move_id.clone(), proposal }, seal));
    }
    for file in &args.add {
        let added = user_input::moves(file)?;
        actions.extend(added.into_iter().map(|proposal| (ReviewAction::Add { proposal }, None)));
    }
    if actions.is_empty() {
        return Ok(Vec::new());
    }
    let by = user_input::user_name(loaded, args.by.as_deref(), "changes the moves")?;
    let at_ms = moothall_store::now_ms();
    let said = |(what, seen)| (ReviewChange { by: by.clone(), at_ms, what }, seen);
    Ok(actions.into_iter().map(said).collect())
}

fn ensure_changeable(record: &RunRecord) -> Result<(), CliError> {
    let id = run_store::short_id(&record.row.run_id);
    if record.waits_for_person() {
        return Ok(());
    }
    let refused = CliError::usage(format!("run {id} is not waiting for review"));
    let kept = record.consult_input();
    let pauses_for_review = kept.is_some_and(|input| input.terms.pause_after_moves);
    Err(if !pauses_for_review {
        refused.with_hint(
            "to review moves before the debates, start a consultation with `--pause-after moves`",
        )
    } else if record.was_reviewed() {
        refused.with_hint("its moves were already reviewed and can no longer be changed")
    } else {
        refused.with_hint(format!("it has no moves yet; continue it with `moothall resume {id}`"))
    })
}

/// Rejects a change that the run would ignore.
fn ensure_applicable(
    record: &RunRecord,
    before: &[ReviewChange],
    change: &ReviewChange,
) -> Result<(), CliError> {
    if let Some(fault) = change.fault() {
        return Err(CliError::usage(fault));
    }
    if before.len() >= MAX_CHANGES {
        return Err(CliError::usage(format!("too many changes (limit: {MAX_CHANGES})"))
            .with_hint("remove all of them with `--undo`"));
    }
    let mut after = before.to_vec();
    after.push(change.clone());
    let (old, new) = (apply_changes(record, before.to_vec())?, apply_changes(record, after)?);
    let ignored =
        |consultation: &StoredConsultation| consultation.view.proceedings.ignored_changes.clone();
    match ignored(&new).get(ignored(&old).len()) {
        None => Ok(()),
        Some(found) => {
            let refused = match change.what.move_id() {
                Some(move_id) => CliError::usage(format!("no move `{}`", display::line(move_id))),
                None => CliError::usage(display::line(&found.message)),
            };
            let ids: Vec<&str> = old.view.moves().map(|one| one.move_id.as_str()).collect();
            Err(refused.with_hint(display::line(&format!("available moves: {}", ids.join(", ")))))
        }
    }
}

/// The run after a review with these changes, computed by the same code as in the run itself. A run
/// that does not wait for review is shown as it is.
fn apply_changes(
    record: &RunRecord,
    changes: Vec<ReviewChange>,
) -> Result<StoredConsultation, CliError> {
    if !record.waits_for_person() {
        return StoredConsultation::of(record);
    }
    StoredConsultation::of(&record.reviewed(MoveReview { changes }))
}

fn write(consultation: &StoredConsultation, folder: &Path) -> Result<(), CliError> {
    let mut files = BTreeMap::new();
    for move_record in consultation.view.proceedings.moves.values() {
        let one = &move_record.proposed;
        let name = format!("{}.toml", one.move_id);
        let path = name.parse().map_err(|_| {
            CliError::failed(format!("`{}` is not a valid file name", display::line(&name)))
        })?;
        let head = format!("{} by {}", one.move_id, one.analyst);
        let seal = move_record.seal().map_err(unsealed)?;
        files.insert(path, user_input::render_move_file(&head, &one.proposal, &seal)?.into_bytes());
    }
    let written = artifacts::write(folder, &files)?;
    written.report_skipped();
    let (many, folder) = (written.written.len(), folder.display());
    terminal::note(&format!("{DIM}wrote {many} moves to {folder}{DIM:#}\n"));
    Ok(())
}

fn report(
    record: &RunRecord,
    consultation: &StoredConsultation,
    said: &[ReviewChange],
) -> Result<Value, CliError> {
    let moves = consultation.view.proceedings.moves.values().map(|move_record| {
        Ok(json!({
            "move_id": move_record.proposed.move_id,
            "analyst": move_record.proposed.analyst,
            "title": move_record.proposed.proposal.title,
            "proposal": move_record.proposed.proposal,
            "said": move_record.said,
            "seal": move_record.seal().map_err(unsealed)?,
            "support": move_record.check.support,
            "findings": move_record.check.findings,
            "similar_to": move_record.similar_to,
        }))
    });
    let all = MoveReview { changes: said.to_vec() };
    Ok(json!({
        "run_id": record.row.run_id,
        "waits_for_person": record.waits_for_person(),
        "moves": moves.collect::<Result<Vec<_>, CliError>>()?,
        "changes": said,
        "seal": all.seal().map_err(unsealed)?,
    }))
}

fn text(record: &RunRecord, consultation: &StoredConsultation, said: &[ReviewChange]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_text(&mut text, record, consultation, said);
    text
}

fn write_text(
    text: &mut String,
    record: &RunRecord,
    consultation: &StoredConsultation,
    said: &[ReviewChange],
) -> std::fmt::Result {
    let id = run_store::short_id(&record.row.run_id);
    let moves = &consultation.view.proceedings.moves;
    if moves.is_empty() {
        return writeln!(text, "no moves have been proposed yet");
    }
    let table = Table::new(columns(moves), terminal::stdout_columns());
    writeln!(text, "{BOLD}{}{BOLD:#}", table.header())?;
    let indent = table.last_offset();
    for (move_record, row) in moves.values().zip(table.rows()) {
        writeln!(text, "{row}")?;
        for mark in marks(move_record) {
            writeln!(text, "{:indent$}{YELLOW}{mark}{YELLOW:#}", "")?;
        }
    }
    if !record.waits_for_person() {
        return Ok(());
    }
    let status = match said.len() {
        0 => "no changes".to_owned(),
        1 => "1 change saved".to_owned(),
        many => format!("{many} changes saved"),
    };
    writeln!(text, "\n{status}; start the debates: moothall resume {id}")?;
    writeln!(
        text,
        "{DIM}show a move: moothall show {id} --move m1\n\
         change moves: moothall moves {id} --veto m3 --reason TEXT, --edit m5=FILE, --add FILE; write \
         files to edit: --write DIR{DIM:#}"
    )
}

fn columns(moves: &BTreeMap<u32, MoveRecord>) -> Vec<TableColumn> {
    let cells = |cell: &dyn Fn(&MoveRecord) -> String| -> Vec<String> {
        moves.values().map(cell).collect()
    };
    let author = |one: &MoveRecord| display::line(&one.proposed.analyst);
    let numbers =
        |one: &MoveRecord| format!("{}/{}", one.check.support.supported, one.check.support.total);
    let title = |one: &MoveRecord| display::cut(&one.proposed.proposal.title, TITLE_CHARS);
    vec![
        TableColumn::text("move", 0, cells(&|one| one.proposed.move_id.clone())),
        TableColumn::text("author", 2, cells(&author)),
        TableColumn::text("numbers", 1, cells(&numbers)),
        TableColumn::text("title", 0, cells(&title)),
    ]
}

fn marks(move_record: &MoveRecord) -> Vec<String> {
    let mut marks: Vec<String> =
        move_record.said.iter().map(|said| display::line(&said.describe())).collect();
    if move_record.is_vetoed() {
        return marks;
    }
    marks.extend(move_record.check.findings.iter().map(display::finding));
    if !move_record.similar_to.is_empty() {
        let like: Vec<&str> = move_record.similar_to.iter().map(String::as_str).collect();
        marks.push(display::line(&format!("very similar to {}", like.join(", "))));
    }
    marks
}
