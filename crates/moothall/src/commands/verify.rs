//! `moothall verify`: verifies a receipt offline.

mod calculations;

use std::collections::BTreeMap;
use std::path::Path;

use moothall_core::consult::{
    ConsultInput, ConsultResult, ForkParent, MoveReview, RankedMove, ReviewChange, group_by_model,
    other_than_parent,
};
use moothall_core::model::{ModelList, ModelName, ModelReply};
use moothall_core::receipt::{EffectRecord, Receipt, ReceiptProblem, VerifiedReceipt, verify};
use moothall_core::text;
use moothall_core::verdict::VerdictTier;
use moothall_core::{Conclusion, EffectId, EffectResult, RunId, RunVerdict};
use moothall_engine::RunRecord;
use serde_json::{Value, json};

use super::runtime;
use crate::args::{GlobalArgs, VerifyArgs};
use crate::config;
use crate::error::{CliError, CliExit};
use crate::run_store::RunStore;
use crate::terminal;

pub(crate) fn run(global: &GlobalArgs, args: &VerifyArgs) -> anyhow::Result<CliExit> {
    let verified = read(&args.receipt, args.json)?;
    let parent = parent(global, args, &verified.receipt)?;
    let VerifiedReceipt { receipt, verdict, head } = &verified;
    let repeated = match args.calculations {
        true => Some(calculations::repeat(global, receipt)?),
        false => None,
    };
    if let Some(different) = repeated.as_ref().and_then(|report| report.different.first()) {
        let message = format!("the calculation `{different}` gives another output now");
        let hint = "the receipt was modified, or the image `python` has changed since the run";
        return Err(refuse(&args.receipt, args.json, None, &message, &message, hint));
    }
    if args.json {
        let mut report = json!({
            "holds": true,
            "verdict": verdict,
            "head": head,
            "run_id": receipt.notes.run_id,
            "manifest": receipt.manifest,
            "effects": receipt.effects.len(),
            "findings": receipt.findings,
            "conclusion": receipt.conclusion,
            "approvals": receipt.approvals,
            "changes": changes(receipt),
        });
        if let (Some((parent, checked)), Value::Object(report)) = (&parent, &mut report) {
            let parent = json!({
                "run_id": parent.run,
                "from": parent.from,
                "journal_sha256": parent.journal_sha256,
                "compared": *checked == ParentCheck::Same,
            });
            report.insert("parent".to_owned(), parent);
        }
        if let Some(repeated) = &repeated {
            report["calculations"] = repeated.json();
        }
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        let demonstration = if receipt.manifest.demonstration {
            " (demo model: scripted answers, no API call)"
        } else {
            ""
        };
        let mut text = format!(
            "receipt is valid\nrun       {}\nworkflow  {} with {}{demonstration}\neffects   {}\nverdict   {verdict}\nhead      {head}\n",
            receipt.notes.run_id,
            text::sanitize_line(&receipt.manifest.workflow),
            text::sanitize_line(&receipt.manifest.model),
            receipt.effects.len(),
        );
        if let Some((parent, checked)) = &parent {
            let checked = match checked {
                ParentCheck::Same => "its results are those of the parent",
                ParentCheck::NotHere => "parent not found; compare with `--parent RECEIPT`",
            };
            text.push_str(&format!("parent    {} from {}: {checked}\n", parent.run, parent.from));
        }
        if !receipt.manifest.models.is_empty() {
            let models = receipt.manifest.models.iter();
            let models: Vec<(&str, ModelList)> =
                models.map(|(id, model)| (id.as_str(), model.clone().into())).collect();
            let models: Vec<_> = models.iter().map(|(id, models)| (*id, models)).collect();
            let line = format!("models    {}", group_by_model(&models));
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        for (model, answers) in fallback_answers(&receipt.effects) {
            let plural = if answers == 1 { "" } else { "s" };
            text.push_str(&format!("fallback  {answers} answer{plural} by {model}\n"));
        }
        for (file, sha256) in &receipt.manifest.texts {
            text.push_str(&format!("text      {} sha256 {sha256}\n", text::sanitize_line(file)));
        }
        // Verification recomputed this result from the recorded replies.
        if let Some(Conclusion::Ranked(ranked)) = receipt.conclusion.as_deref() {
            if let Some(verdict) = &ranked.verdict {
                text.push_str(&format!("panel     {}\n", verdict.tiers.headline.text()));
            }
            for one in &ranked.recommended {
                text.push_str(&text::sanitize_line(&recommended(ranked, one)));
                text.push('\n');
            }
        }
        if let Some(repeated) = &repeated {
            text.push_str(&format!("programs  {}\n", repeated.text()));
        }
        for change in changes(receipt) {
            let line = format!("changed   {}", change.describe());
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        for approval in &receipt.approvals {
            let line = format!("approved  {} by {}", approval.move_id, approval.by);
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        for finding in &receipt.findings {
            let line = format!("finding   {}: {}", finding.rule, finding.message);
            text.push_str(&text::sanitize_line(&line));
            text.push('\n');
        }
        terminal::print(&text)?;
    }
    Ok(match verdict {
        RunVerdict::Pass => CliExit::Fine,
        RunVerdict::NeedsPerson => CliExit::NeedsPerson,
        RunVerdict::Fail => CliExit::VerdictNegative,
    })
}

/// Reads and verifies a receipt.
fn read(path: &Path, json: bool) -> anyhow::Result<VerifiedReceipt> {
    let bytes = fs_err::read(path)
        .map_err(|error| CliError::usage("cannot read the receipt").with_source(error))?;
    verify(&bytes).map_err(|fault| {
        let hint = match fault.problem {
            ReceiptProblem::OtherFormat(_) => {
                "it was written by another version of moothall; verify it with that version"
            }
            _ => "it was modified after it was written, or is not a receipt",
        };
        let line = Some(fault.line);
        refuse(path, json, line, &fault.problem.to_string(), &fault.to_string(), hint)
    })
}

fn refuse(
    path: &Path,
    json: bool,
    line: Option<usize>,
    problem: &str,
    message: &str,
    hint: &str,
) -> anyhow::Error {
    if json {
        let report = json!({"holds": false, "line": line, "problem": problem});
        if let Err(error) = terminal::print(&format!("{report:#}\n")) {
            return error.into();
        }
    }
    let message = format!("{} is not valid: {message}", path.display());
    CliError::failed(message).with_hint(hint).into()
}

/// The comparison of a fork with its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParentCheck {
    Same,
    NotHere,
}

/// Compares the inherited results of a fork with its parent: with the given receipt, or with the
/// stored run.
fn parent<'a>(
    global: &GlobalArgs,
    args: &VerifyArgs,
    receipt: &'a Receipt,
) -> anyhow::Result<Option<(&'a ForkParent, ParentCheck)>> {
    let Some(input) = receipt.input.as_deref() else { return no_parent(args) };
    let Some(parent) = &input.parent else { return no_parent(args) };
    let effects = match &args.parent {
        Some(path) => {
            let found = read(path, args.json)?.receipt;
            if found.notes.run_id != parent.run {
                let message =
                    format!("the parent is run {}, not {}", parent.run, found.notes.run_id);
                return Err(CliError::usage(message)
                    .with_hint("pass the receipt of the run that was forked")
                    .into());
            }
            Some(found.effects)
        }
        None => stored_effects(global, &parent.run)?,
    };
    let Some(effects) = effects else { return Ok(Some((parent, ParentCheck::NotHere))) };
    match other_than_parent(input, &receipt.effects, &effects) {
        None => Ok(Some((parent, ParentCheck::Same))),
        Some(id) => {
            let message = format!("`{id}` differs from the parent run {}", parent.run);
            let hint = "the receipt or the parent run was modified";
            Err(refuse(&args.receipt, args.json, None, &message, &message, hint))
        }
    }
}

fn no_parent<T>(args: &VerifyArgs) -> anyhow::Result<Option<T>> {
    match args.parent {
        None => Ok(None),
        Some(_) => Err(CliError::usage("the receipt does not belong to a fork")
            .with_hint("omit `--parent`")
            .into()),
    }
}

/// The results of a stored run. Verification works without a store, so one that cannot be opened
/// counts as missing.
fn stored_effects(
    global: &GlobalArgs,
    run_id: &RunId,
) -> anyhow::Result<Option<BTreeMap<EffectId, EffectRecord>>> {
    let Ok(loaded) = config::load(global.config.as_deref(), toml::Table::new()) else {
        return Ok(None);
    };
    runtime()?.block_on(async {
        let Ok(Some(local)) = RunStore::open_existing(&loaded).await else { return Ok(None) };
        let record = RunRecord::read(&*local.store, run_id).await;
        Ok(record.ok().map(|record| record.effects()))
    })
}

/// Changes that a person made to the moves before the debates.
fn changes(receipt: &Receipt) -> Vec<&ReviewChange> {
    let said = receipt.effects.values().filter_map(|record| MoveReview::of(&record.result));
    let inherited = receipt.input.as_deref().and_then(ConsultInput::inherited_review);
    inherited.into_iter().chain(said).flat_map(|review| &review.changes).collect()
}

/// The number of answers by each fallback.
fn fallback_answers(effects: &BTreeMap<EffectId, EffectRecord>) -> BTreeMap<&ModelName, usize> {
    let mut answers = BTreeMap::new();
    for record in effects.values() {
        if let EffectResult::ModelReplied(ModelReply { fallback: Some(fallback), .. }) =
            &record.result
        {
            *answers.entry(&fallback.model).or_default() += 1;
        }
    }
    answers
}

fn recommended(ranked: &ConsultResult, one: &RankedMove) -> String {
    if let Some(verdict) = &ranked.verdict {
        // A rank would order moves of the same tier.
        let tier = verdict.estimate(&one.move_id).and_then(|found| found.tier);
        let tier = tier.map_or("best", VerdictTier::text);
        return format!("{tier:<9} {} {}", one.move_id, one.title);
    }
    let rank = one.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    let score = one
        .debated
        .as_ref()
        .map_or_else(String::new, |debated| format!(" ({})", debated.score_text()));
    format!("rank {rank:<4} {} {}{score}", one.move_id, one.title)
}
