//! `moothall replay`: derives a run again from its journal, offline and without model calls.

use moothall_core::consult::settle;
use moothall_core::replay::{RecordedResult, replay};
use moothall_core::report::derive;
use moothall_core::{EffectId, Outcome, RunSpec, Workflow};
use moothall_engine::RunRecord;
use serde_json::json;

use super::runtime;
use crate::args::{GlobalArgs, ReplayArgs};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::launch;
use crate::run_store::{self, open_and_find};
use crate::{config, logging, terminal};

enum ReplayComparison {
    Same(Box<Outcome>),
    /// A different outcome or none, with a description.
    Different(String),
}

pub(crate) fn run(global: &GlobalArgs, args: &ReplayArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        let id = run_store::short_id(&row.run_id);
        if row.outcome.is_none() {
            return Err(CliError::usage(format!("run {} is not finished", row.run_id))
                .with_hint(format!("see `moothall show {id}`"))
                .into());
        }
        let record =
            RunRecord::read(&*local.store, &row.run_id).await.map_err(run_store::store_error)?;
        let repeated = repeat(&record)?;
        if args.json {
            let report = json!({
                "run_id": row.run_id,
                "same": matches!(repeated, ReplayComparison::Same(_)),
                "difference": match &repeated {
                    ReplayComparison::Same(_) => None,
                    ReplayComparison::Different(why) => Some(why),
                },
                "effects": record.journal.len(),
            });
            terminal::print(&format!("{report:#}\n"))?;
        }
        match repeated {
            ReplayComparison::Same(_) if args.json => Ok(CliExit::Fine),
            ReplayComparison::Same(outcome) => {
                let (effects, verdict) = (record.journal.len(), display::verdict(&outcome));
                terminal::print(&format!(
                    "replaying {effects} results gives the same outcome: {verdict}\n"
                ))?;
                Ok(CliExit::Fine)
            }
            ReplayComparison::Different(why) => Err(CliError::failed(format!(
                "run {} does not match its journal: {}",
                row.run_id,
                display::line(&why)
            ))
            .with_hint(
                "another version of moothall may have executed it, or the store was modified",
            )
            .into()),
        }
    })
}

fn repeat(record: &RunRecord) -> Result<ReplayComparison, CliError> {
    let Some(stored) = &record.row.outcome else {
        return Ok(ReplayComparison::Different("no outcome is stored".to_owned()));
    };
    let (expected, derived) = match launch::read_spec(&record.row.spec)? {
        RunSpec::Consult(spec) => {
            let derived = derive(&spec.input, &record.effects(), &record.approvals);
            let derived = derived.map(Some).map_err(|fault| fault.to_string());
            (settle(stored.clone(), &record.approvals), derived)
        }
        spec @ (RunSpec::Program(_) | RunSpec::Edit(_)) => {
            (stored.clone(), again(record, launch::workflow(spec)?))
        }
    };
    Ok(match derived {
        Ok(Some(outcome)) if outcome == expected => ReplayComparison::Same(Box::new(outcome)),
        Ok(Some(outcome)) => ReplayComparison::Different(difference(&expected, &outcome)),
        Ok(None) => ReplayComparison::Different("replaying it gives no outcome".to_owned()),
        Err(fault) => ReplayComparison::Different(fault),
    })
}

/// Replays a workflow with the results in the journal.
fn again(record: &RunRecord, workflow: impl Workflow) -> Result<Option<Outcome>, String> {
    let answer = |id: &EffectId| {
        let entry = record.journal.get(id)?;
        Some(RecordedResult { request_sha256: Some(entry.request_sha256), result: &entry.result })
    };
    let replayed = replay(workflow, answer).map(|replayed| replayed.outcome);
    replayed.map_err(|fault| fault.to_string())
}

fn difference(stored: &Outcome, derived: &Outcome) -> String {
    if stored.verdict != derived.verdict {
        format!("the verdict is {}, but {} is stored", derived.verdict, stored.verdict)
    } else if stored.findings != derived.findings {
        let (now, before) = (derived.findings.len(), stored.findings.len());
        format!("the findings differ: {now} now, {before} stored")
    } else {
        "the conclusion differs".to_owned()
    }
}
