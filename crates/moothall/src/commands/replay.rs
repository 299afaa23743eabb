//! `moothall replay`: a run derived again from its journal, offline. Nobody is asked.

use std::collections::BTreeMap;

use moothall_core::consult::settle;
use moothall_core::receipt::EffectRecord;
use moothall_core::replay::{Known, replay};
use moothall_core::report::derive;
use moothall_core::{EffectId, Outcome, RunSpec, Workflow};
use moothall_engine::RunRecord;
use serde_json::json;

use super::runtime;
use crate::args::{Global, ReplayArgs};
use crate::display;
use crate::error::{CliError, Exit};
use crate::launch;
use crate::local::{self, open_and_find};
use crate::{config, logging, terminal};

/// What a repetition came to.
enum Repeated {
    /// The same end.
    Same(Box<Outcome>),
    /// Another one, or none; in words.
    Different(String),
}

pub(super) fn run(global: &Global, args: &ReplayArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let id = local::short(&row.run_id);
        if row.outcome.is_none() {
            return Err(CliError::usage(format!("run {} has not come to an end", row.run_id))
                .with_hint(format!("see `moothall show {id}`"))
                .into());
        }
        let record = RunRecord::read(&*local.store, &row.run_id).await.map_err(local::broken)?;
        let repeated = repeat(&record)?;
        if args.json {
            let report = json!({
                "run_id": row.run_id,
                "same": matches!(repeated, Repeated::Same(_)),
                "difference": match &repeated {
                    Repeated::Same(_) => None,
                    Repeated::Different(why) => Some(why),
                },
                "effects": record.journal.len(),
            });
            terminal::print(&format!("{report:#}\n"))?;
        }
        match repeated {
            Repeated::Same(_) if args.json => Ok(Exit::Fine),
            Repeated::Same(outcome) => {
                let (effects, verdict) = (record.journal.len(), display::verdict(&outcome));
                terminal::print(&format!(
                    "the same end follows from {effects} answers: {verdict}\n"
                ))?;
                Ok(Exit::Fine)
            }
            Repeated::Different(why) => Err(CliError::failed(format!(
                "run {} does not follow from its journal: {}",
                row.run_id,
                display::line(&why)
            ))
            .with_hint("another version of moothall may have driven it, or the store was changed")
            .into()),
        }
    })
}

fn repeat(record: &RunRecord) -> Result<Repeated, CliError> {
    let Some(stored) = &record.row.outcome else {
        return Ok(Repeated::Different("it has no end".to_owned()));
    };
    let (expected, derived) = match launch::read_spec(&record.row.spec)? {
        RunSpec::Consult(spec) => {
            let derived = derive(&spec.input, &effects(record), &record.approvals);
            let derived = derived.map(Some).map_err(|fault| fault.to_string());
            (settle(stored.clone(), &record.approvals), derived)
        }
        spec @ (RunSpec::Program(_) | RunSpec::Edit(_)) => {
            (stored.clone(), again(record, launch::workflow(spec)?))
        }
    };
    Ok(match derived {
        Ok(Some(outcome)) if outcome == expected => Repeated::Same(Box::new(outcome)),
        Ok(Some(outcome)) => Repeated::Different(difference(&expected, &outcome)),
        Ok(None) => Repeated::Different("its answers lead to no end".to_owned()),
        Err(fault) => Repeated::Different(fault),
    })
}

/// What the answers of a run lead a workflow to.
fn again(record: &RunRecord, workflow: impl Workflow) -> Result<Option<Outcome>, String> {
    let answer = |id: &EffectId| {
        let entry = record.journal.get(id)?;
        Some(Known { request_sha256: Some(entry.request_sha256), result: &entry.result })
    };
    let replayed = replay(workflow, answer).map(|replayed| replayed.outcome);
    replayed.map_err(|fault| fault.to_string())
}

fn effects(record: &RunRecord) -> BTreeMap<EffectId, EffectRecord> {
    let effect = |(id, entry): (&EffectId, &moothall_store::JournalEntry)| {
        let (request_sha256, result) = (entry.request_sha256, entry.result.clone());
        (id.clone(), EffectRecord { request_sha256, result })
    };
    record.journal.iter().map(effect).collect()
}

/// What is not the same, in a few words.
fn difference(stored: &Outcome, derived: &Outcome) -> String {
    if stored.verdict != derived.verdict {
        format!("the verdict is {}, and {} is stored", derived.verdict, stored.verdict)
    } else if stored.findings != derived.findings {
        let (now, before) = (derived.findings.len(), stored.findings.len());
        format!("the findings differ: {now} now, {before} stored")
    } else {
        "the conclusion differs".to_owned()
    }
}
