//! `moothall verify --calculations`: runs the recorded calculations again and compares their output.

use std::collections::BTreeMap;

use moothall_core::debate::{CALCULATION_IMAGE, CalculationResult, calculation_facts};
use moothall_core::receipt::Receipt;
use moothall_core::sandbox::{ExecuteRequest, FileRef, SandboxExecution, SandboxLabels};
use moothall_core::{Conclusion, EffectId, EffectResult, Sha256Hex};
use moothall_engine::SandboxExecutor;
use moothall_sandbox::{ExecutionJob, ProgramExecutor as _};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::commands::runtime;
use crate::error::CliError;
use crate::{config, isolation};

/// What came of running the calculations of a receipt again.
#[derive(Debug, Default)]
pub(crate) struct RepeatReport {
    /// How many gave the same output, byte for byte.
    pub(crate) equal: usize,
    /// Calculations that gave another output or ended in another way.
    pub(crate) different: Vec<EffectId>,
    /// How many were recorded as not run.
    pub(crate) not_run: usize,
}

impl RepeatReport {
    /// The result in one line.
    pub(crate) fn text(&self) -> String {
        let Self { equal, different, not_run } = self;
        let all = equal + different.len();
        let mut text = format!("{equal} of {all} gave the same output again");
        if *not_run > 0 {
            text.push_str(&format!("; {not_run} had not been run"));
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        json!({"equal": self.equal, "different": self.different, "not_run": self.not_run})
    }
}

/// Runs every calculation again, each in a fresh sandbox.
pub(crate) fn repeat(global: &GlobalArgs, receipt: &Receipt) -> Result<RepeatReport, CliError> {
    let results = || receipt.effects.values().map(|record| &record.result);
    let sheet = results().find_map(|result| match result {
        EffectResult::Gathered(evidence) => Some(evidence.sheet.as_ref()),
        _ => None,
    });
    let facts = calculation_facts(sheet.flatten());
    let requests = requests(results(), FileRef::of(&facts))?;
    let not_run = results().filter(|result| matches!(result, EffectResult::NotExecuted(_))).count();
    let mut report = RepeatReport { not_run, ..RepeatReport::default() };
    let executed = receipt.effects.iter().filter_map(|(id, record)| match &record.result {
        EffectResult::Executed(execution) => Some((id, record.request_sha256, &**execution)),
        _ => None,
    });
    let executed: Vec<(&EffectId, Sha256Hex, &SandboxExecution)> = executed.collect();
    if executed.is_empty() {
        return Ok(report);
    }
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    runtime()?.block_on(async {
        let policy = isolation::policy(&loaded, None, false)?;
        let sandboxes = isolation::sandboxes(&loaded, &policy, CALCULATION_IMAGE, 1).await?;
        let executor = SandboxExecutor::new(sandboxes);
        for (id, request_sha256, recorded) in executed {
            let request = requests.get(&request_sha256).ok_or_else(|| {
                CliError::failed(format!("`{id}` is not a calculation of a debate"))
            })?;
            let inputs = request.inputs.keys().map(|path| (path.clone(), facts.clone())).collect();
            let labels = SandboxLabels::of_effect(&receipt.notes.run_id, id);
            let labels = labels.with("stage", "calculation");
            let repeated =
                executor.execute(ExecutionJob { labels: &labels, request, inputs }).await;
            let repeated = repeated.map_err(|failure| {
                CliError::failed(format!("`{id}` cannot be run again: {}", failure.detail))
                    .with_hint("test the engines of this machine with `moothall doctor`")
            })?;
            let now = &repeated.execution;
            match now.exit == recorded.exit && now.stdout == recorded.stdout {
                true => report.equal += 1,
                false => report.different.push(id.clone()),
            }
        }
        executor.shut_down().await;
        Ok(report)
    })
}

/// The executions of all recorded calculations, by the hash of their request.
fn requests<'a>(
    results: impl Iterator<Item = &'a EffectResult>,
    facts: FileRef,
) -> Result<BTreeMap<Sha256Hex, ExecuteRequest>, CliError> {
    let calculations = results.filter_map(|result| match result {
        EffectResult::ChildEnded(end) => match &end.outcome.conclusion {
            Conclusion::Debated(debated) => Some(&debated.calculations),
            _ => None,
        },
        _ => None,
    });
    let request = |one: &CalculationResult| {
        let request = one.request(facts);
        let hash = request.hash().map_err(|error| {
            CliError::failed("a calculation cannot be hashed").with_source(error)
        })?;
        Ok((hash, request))
    };
    calculations.flatten().map(request).collect()
}
