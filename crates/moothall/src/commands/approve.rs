//! `moothall approve`: a person's word on a move that code holds back.

use moothall_core::Conclusion;
use moothall_core::consult::{Approval, Consult};
use moothall_engine::RunRecord;
use serde_json::json;

use super::consult::{Reading, marks};
use super::{runtime, words};
use crate::args::{ApproveArgs, Global};
use crate::error::{CliError, Exit};
use crate::local::{self, open_and_find};
use crate::terminal::{self, YELLOW};
use crate::{config, logging};

pub(super) fn run(global: &Global, args: &ApproveArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let user = ["USER", "LOGNAME"].iter().find_map(|name| loaded.environment.get(name));
    let by = match args.by.as_deref().or(user).map(str::trim) {
        Some(by) if !by.is_empty() => by.to_owned(),
        _ => {
            return Err(CliError::usage("nobody says who approves")
                .with_hint("say it: `--by NAME`")
                .into());
        }
    };
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded.places.folders, &args.run).await?;
        let (store, id) = (&*local.store, local::short(&row.run_id).to_owned());
        if row.workflow != Consult::NAME {
            let words = format!("run {} is no consultation: it has no moves", row.run_id);
            return Err(CliError::usage(words).into());
        }
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        may_be_approved(&record, &Reading::of(&record)?, &args.move_id, &id)?;
        let approval = Approval {
            move_id: args.move_id.clone(),
            by,
            note: args.note.clone().unwrap_or_default(),
            at_ms: local::now_ms(),
        };
        store.approve(&row.run_id, approval.clone()).await.map_err(local::broken)?;
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        let after = Reading::of(&record)?;
        let ranked = after.view.ranked.as_ref();
        let found =
            ranked.and_then(|ranked| ranked.moves().find(|one| one.move_id == args.move_id));
        let rank = found.and_then(|one| one.rank);
        if args.json {
            let verdict = after.view.outcome.as_ref().map(|outcome| outcome.verdict);
            let report = json!({
                "run_id": row.run_id,
                "approval": approval,
                "rank": rank,
                "verdict": verdict,
            });
            terminal::print(&format!("{report:#}\n"))?;
            return Ok(Exit::Fine);
        }
        let place = rank.map_or_else(String::new, |rank| format!(" and has rank {rank}"));
        terminal::print(&format!("{} is approved{place}\n", words::line(&args.move_id)))?;
        for mark in found.map(|found| marks(&after.view, found)).unwrap_or_default() {
            terminal::note(&format!("{YELLOW}its mark stays: {mark}{YELLOW:#}\n"));
        }
        Ok(Exit::Fine)
    })
}

/// Only what code holds back waits for a person, and only when everything is on the table.
fn may_be_approved(
    record: &RunRecord,
    reading: &Reading,
    move_id: &str,
    id: &str,
) -> Result<(), CliError> {
    let shown = words::line(move_id);
    let ranked = match reading.view.outcome.as_ref().map(|outcome| &outcome.conclusion) {
        Some(Conclusion::Ranked(ranked)) => ranked,
        Some(_) => return Err(CliError::usage(format!("run {id} has no ranking"))),
        None => {
            return Err(CliError::usage(format!("run {id} has not come to its end"))
                .with_hint(format!("let it go on first: `moothall resume {id}`")));
        }
    };
    let Some(found) = ranked.moves().find(|one| one.move_id == move_id) else {
        let ids: Vec<&str> = ranked.moves().map(|one| one.move_id.as_str()).collect();
        return Err(CliError::usage(format!("there is no move `{shown}` in run {id}"))
            .with_hint(words::line(&format!("there are {}", ids.join(", ")))));
    };
    if let Some(before) = record.approvals.iter().find(|one| one.move_id == move_id) {
        let words = format!("{shown} is approved already, by {}", words::line(&before.by));
        return Err(CliError::usage(words));
    }
    if found.debated.is_none() {
        return Err(CliError::usage(format!("{shown} was not debated, so it cannot be ranked")));
    }
    if found.rank.is_some() {
        return Err(CliError::usage(format!("{shown} is ranked already: nothing holds it back")));
    }
    Ok(())
}
