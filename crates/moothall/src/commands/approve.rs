//! `moothall approve`: approves moves that the checks hold back.

use moothall_core::Conclusion;
use moothall_core::RunKind;
use moothall_core::consult::{
    ApprovalRefusal, ConsultResult, MoveApproval, MoveReviewDecision, VERDICT_APPROVAL,
    VerdictRefusal,
};
use moothall_core::report::VerdictSummary;
use moothall_engine::RunRecord;
use serde_json::json;

use super::consult::{StoredConsultation, marks};
use super::runtime;
use crate::args::{ApproveArgs, GlobalArgs};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::run_store::{self, open_and_find};
use crate::terminal::{self, YELLOW};
use crate::user_input;
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, args: &ApproveArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let by = user_input::user_name(&loaded, args.by.as_deref(), "approves")?;
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let (store, id) = (&*local.store, run_store::short_id(&row.run_id).to_owned());
        if !row.spec.is_kind(RunKind::Consult) {
            return Err(run_store::not_a_consultation(&row.run_id).into());
        }
        let record = RunRecord::read(store, &row.run_id).await.map_err(run_store::store_error)?;
        let consultation = StoredConsultation::of(&record)?;
        let move_ids = match &args.move_id {
            _ if args.verdict => {
                ensure_verdict_approvable(&record, &consultation, &id)?;
                vec![VERDICT_APPROVAL.to_owned()]
            }
            Some(move_id) => vec![move_id.clone()],
            None => held_moves(&record, &consultation, &id)?,
        };
        for move_id in move_ids.iter().filter(|_| !args.verdict) {
            ensure_approvable(&record, &consultation, move_id, &id)?;
        }
        let (note, at_ms) = (args.note.clone().unwrap_or_default(), moothall_store::now_ms());
        let mut approvals = Vec::new();
        for move_id in move_ids {
            let (by, note) = (by.clone(), note.clone());
            let approval = MoveApproval { move_id, by, note, at_ms };
            store.approve(&row.run_id, approval.clone()).await.map_err(run_store::store_error)?;
            approvals.push(approval);
        }
        let record = RunRecord::read(store, &row.run_id).await.map_err(run_store::store_error)?;
        print_result(&record, &approvals, args)
    })
}

/// All moves that need a person's approval.
fn held_moves(
    record: &RunRecord,
    consultation: &StoredConsultation,
    id: &str,
) -> Result<Vec<String>, CliError> {
    let ranked = ranking(consultation, id)?;
    let ids = ranked.moves().map(|one| &one.move_id);
    let held = ids.filter(|id| ranked.check_needs_approval(&record.approvals, id).is_ok());
    let held: Vec<String> = held.cloned().collect();
    match held.is_empty() {
        true => Err(CliError::usage(format!("run {id} has no moves that need approval"))
            .with_hint(format!("see its ranking with `moothall show {id}`"))),
        false => Ok(held),
    }
}

fn print_result(
    record: &RunRecord,
    approvals: &[MoveApproval],
    args: &ApproveArgs,
) -> anyhow::Result<CliExit> {
    let after = StoredConsultation::of(record)?;
    let ranked = after.view.ranked.as_ref();
    let found = |move_id: &str| ranked?.moves().find(|one| one.move_id == move_id);
    let rank = |move_id: &str| ranked.and_then(|ranked| ranked.meaningful_rank(move_id));
    if args.json {
        let verdict = after.view.outcome.as_ref().map(|outcome| outcome.verdict);
        let of = |one: &MoveApproval| json!({"approval": one, "rank": rank(&one.move_id)});
        let mut report = json!({
            "run_id": record.row.run_id,
            "approvals": approvals.iter().map(of).collect::<Vec<_>>(),
            "verdict": verdict,
        });
        // Scripts written before several moves could be approved in one call read these fields.
        if let [only] = approvals {
            report["approval"] = json!(only);
            report["rank"] = json!(rank(&only.move_id));
        }
        terminal::print(&format!("{report:#}\n"))?;
        return Ok(CliExit::Fine);
    }
    if args.verdict {
        terminal::print("approved the verdict of a panel that failed its controls\n")?;
        let sign = VerdictSummary::of(&after.view).and_then(|verdict| verdict.sign());
        let sign =
            sign.map(|sign| format!("{YELLOW}still marked: {}{YELLOW:#}\n", display::line(&sign)));
        terminal::note(&sign.unwrap_or_default());
        return Ok(CliExit::Fine);
    }
    for MoveApproval { move_id, .. } in approvals {
        let verdict = VerdictSummary::of(&after.view);
        let rank_note = match (verdict.and_then(|one| one.move_line(move_id)), rank(move_id)) {
            (Some(line), _) => format!(": {line}"),
            (None, Some(rank)) => format!(" with rank {rank}"),
            (None, None) => String::new(),
        };
        terminal::print(&format!("approved {}{rank_note}\n", display::line(move_id)))?;
        for mark in found(move_id).map(|found| marks(&after.view, found)).unwrap_or_default() {
            terminal::note(&format!("{YELLOW}still marked: {mark}{YELLOW:#}\n"));
        }
    }
    Ok(CliExit::Fine)
}

fn ranking<'a>(
    consultation: &'a StoredConsultation,
    id: &str,
) -> Result<&'a ConsultResult, CliError> {
    match consultation.view.outcome.as_ref().map(|outcome| &outcome.conclusion) {
        Some(Conclusion::Ranked(ranked)) => Ok(ranked),
        Some(_) => Err(CliError::usage(format!("run {id} ended without a ranking"))
            .with_hint(format!("see why with `moothall show {id}`"))),
        None => Err(CliError::usage(format!("run {id} is not finished"))
            .with_hint(format!("continue it with `moothall resume {id}`"))),
    }
}

/// Only the verdict of a panel that failed its controls can be approved.
fn ensure_verdict_approvable(
    record: &RunRecord,
    consultation: &StoredConsultation,
    id: &str,
) -> Result<(), CliError> {
    let ranked = ranking(consultation, id)?;
    ranked.check_verdict_needs_approval(&record.approvals).map_err(|why| match why {
        VerdictRefusal::NoVerdict => CliError::usage(format!("run {id} has no verdict of a panel"))
            .with_hint("start runs without `--verdict off`"),
        VerdictRefusal::Approved(before) => {
            let by = display::line(&before.by);
            CliError::usage(format!("the verdict of run {id} was already approved by {by}"))
        }
        VerdictRefusal::NotFailed => {
            CliError::usage(format!("the panel of run {id} did not fail its controls"))
                .with_hint(format!("see its verdict with `moothall show {id}`"))
        }
    })
}

/// Only moves that the checks hold back can be approved, and only after the run has finished.
fn ensure_approvable(
    record: &RunRecord,
    consultation: &StoredConsultation,
    move_id: &str,
    id: &str,
) -> Result<(), CliError> {
    let shown = display::line(move_id);
    let ranked = ranking(consultation, id)?;
    ranked.check_needs_approval(&record.approvals, move_id).map_err(|why| match why {
        ApprovalRefusal::Unknown => {
            let ids: Vec<&str> = ranked.moves().map(|one| one.move_id.as_str()).collect();
            CliError::usage(format!("run {id} has no move `{shown}`"))
                .with_hint(display::line(&format!("available moves: {}", ids.join(", "))))
        }
        ApprovalRefusal::Approved(before) => {
            let by = display::line(&before.by);
            CliError::usage(format!("{shown} was already approved by {by}"))
        }
        ApprovalRefusal::Vetoed(found) => {
            let said = found.said.as_ref().map(MoveReviewDecision::describe).unwrap_or_default();
            CliError::usage(display::line(&format!("{shown} was {said}")))
        }
        ApprovalRefusal::NotDebated => {
            CliError::usage(format!("{shown} was not debated and cannot be ranked"))
                .with_hint(format!("see why with `moothall show {id} --move {shown}`"))
        }
        ApprovalRefusal::Ranked => {
            CliError::usage(format!("{shown} is already ranked and needs no approval"))
        }
    })
}
