//! `moothall approve`: a person's word on a move that code holds back.

use moothall_core::Conclusion;
use moothall_core::RunKind;
use moothall_core::consult::{Approval, LastWord, NotHeld, Ranked};
use moothall_engine::RunRecord;
use serde_json::json;

use super::consult::{Reading, marks};
use super::runtime;
use crate::args::{ApproveArgs, Global};
use crate::display;
use crate::error::{CliError, Exit};
use crate::local::{self, open_and_find};
use crate::terminal::{self, YELLOW};
use crate::user_input;
use crate::{config, logging};

pub(super) fn run(global: &Global, args: &ApproveArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let by = user_input::who(&loaded, args.by.as_deref(), "approves")?;
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let (store, id) = (&*local.store, local::short(&row.run_id).to_owned());
        if !row.spec.is_kind(RunKind::Consult) {
            let words = format!("run {} is no consultation: it has no moves", row.run_id);
            return Err(CliError::usage(words).into());
        }
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        let reading = Reading::of(&record)?;
        let wanted = match &args.move_id {
            Some(move_id) => vec![move_id.clone()],
            None => held(&record, &reading, &id)?,
        };
        for move_id in &wanted {
            may_be_approved(&record, &reading, move_id, &id)?;
        }
        let (note, at_ms) = (args.note.clone().unwrap_or_default(), moothall_store::now_ms());
        let mut approvals = Vec::new();
        for move_id in wanted {
            let (by, note) = (by.clone(), note.clone());
            let approval = Approval { move_id, by, note, at_ms };
            store.approve(&row.run_id, approval.clone()).await.map_err(local::broken)?;
            approvals.push(approval);
        }
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        tell(&record, &approvals, args)
    })
}

/// Every move that waits for a person.
fn held(record: &RunRecord, reading: &Reading, id: &str) -> Result<Vec<String>, CliError> {
    let ranked = ranking(reading, id)?;
    let ids = ranked.moves().map(|one| &one.move_id);
    let held = ids.filter(|id| ranked.waits_for_word(&record.approvals, id).is_ok());
    let held: Vec<String> = held.cloned().collect();
    match held.is_empty() {
        true => Err(CliError::usage(format!("no move of run {id} is held back"))),
        false => Ok(held),
    }
}

fn tell(record: &RunRecord, approvals: &[Approval], args: &ApproveArgs) -> anyhow::Result<Exit> {
    let after = Reading::of(record)?;
    let ranked = after.view.ranked.as_ref();
    let found = |move_id: &str| ranked?.moves().find(|one| one.move_id == move_id);
    let rank = |move_id: &str| found(move_id).and_then(|one| one.rank);
    if args.json {
        let verdict = after.view.outcome.as_ref().map(|outcome| outcome.verdict);
        let of = |one: &Approval| json!({"approval": one, "rank": rank(&one.move_id)});
        let mut report = json!({
            "run_id": record.row.run_id,
            "approvals": approvals.iter().map(of).collect::<Vec<_>>(),
            "verdict": verdict,
        });
        // As it was before several could be approved at once.
        if let [only] = approvals {
            report["approval"] = json!(only);
            report["rank"] = json!(rank(&only.move_id));
        }
        terminal::print(&format!("{report:#}\n"))?;
        return Ok(Exit::Fine);
    }
    for Approval { move_id, .. } in approvals {
        let place = rank(move_id).map_or_else(String::new, |rank| format!(" and has rank {rank}"));
        terminal::print(&format!("{} is approved{place}\n", display::line(move_id)))?;
        for mark in found(move_id).map(|found| marks(&after.view, found)).unwrap_or_default() {
            terminal::note(&format!("{YELLOW}its mark stays: {mark}{YELLOW:#}\n"));
        }
    }
    Ok(Exit::Fine)
}

fn ranking<'a>(reading: &'a Reading, id: &str) -> Result<&'a Ranked, CliError> {
    match reading.view.outcome.as_ref().map(|outcome| &outcome.conclusion) {
        Some(Conclusion::Ranked(ranked)) => Ok(ranked),
        Some(_) => Err(CliError::usage(format!("run {id} has no ranking"))),
        None => Err(CliError::usage(format!("run {id} has not come to its end"))
            .with_hint(format!("let it go on first: `moothall resume {id}`"))),
    }
}

/// Only what code holds back waits for a person, and only when everything is on the table.
fn may_be_approved(
    record: &RunRecord,
    reading: &Reading,
    move_id: &str,
    id: &str,
) -> Result<(), CliError> {
    let shown = display::line(move_id);
    let ranked = ranking(reading, id)?;
    ranked.waits_for_word(&record.approvals, move_id).map_err(|why| match why {
        NotHeld::Unknown => {
            let ids: Vec<&str> = ranked.moves().map(|one| one.move_id.as_str()).collect();
            CliError::usage(format!("there is no move `{shown}` in run {id}"))
                .with_hint(display::line(&format!("there are {}", ids.join(", "))))
        }
        NotHeld::Approved(before) => {
            let by = display::line(&before.by);
            CliError::usage(format!("{shown} is approved already, by {by}"))
        }
        NotHeld::Vetoed(found) => {
            let said = found.said.as_ref().map(LastWord::words).unwrap_or_default();
            CliError::usage(display::line(&format!("{shown} was {said}")))
        }
        NotHeld::NotDebated => {
            CliError::usage(format!("{shown} was not debated, so it cannot be ranked"))
        }
        NotHeld::Ranked => {
            CliError::usage(format!("{shown} is ranked already: nothing holds it back"))
        }
    })
}
