//! Runs programs in sandboxes, with input and output files in the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use moothall_core::consult::GATHER_ID;
use moothall_core::debate::calculation_facts;
use moothall_core::money::SpendTotals;
use moothall_core::receipt::EffectTiming;
use moothall_core::sandbox::{
    ExecuteRequest, ExecutionExit, FileRef, GuestPath, SandboxExecution, SandboxFailure,
    SandboxFailureKind, SandboxLabels,
};
use moothall_core::{Effect, EffectId, EffectResult, RunId};
use moothall_sandbox::{ExecutionJob, ExecutionOutput, ProgramExecutor};
use moothall_store::{MAX_ARTIFACT_BYTES, Store};

use crate::perform::{EffectPerformer, PerformFuture, TimedResult};

/// Performs executions in sandboxes and delegates all other effects.
///
/// Executions are at-least-once: one that was in progress when its driver was killed is repeated.
/// This is safe because a sandboxed program has no effects outside the sandbox, and its output
/// files count only once the result is journaled.
#[derive(Debug)]
pub struct SandboxPerformer {
    models: Arc<dyn EffectPerformer>,
    executor: Arc<dyn ProgramExecutor>,
    store: Arc<dyn Store>,
    run_id: RunId,
    /// What the sandboxes are for, in listings.
    stage: &'static str,
}

impl SandboxPerformer {
    /// Reads and writes the files of executions in `store`, next to the run's journal.
    pub fn new(
        models: Arc<dyn EffectPerformer>,
        executor: Arc<dyn ProgramExecutor>,
        store: Arc<dyn Store>,
        run_id: RunId,
    ) -> Self {
        Self { models, executor, store, run_id, stage: "program" }
    }

    /// Executes the calculations of debates.
    #[must_use]
    pub fn for_calculations(self) -> Self {
        Self { stage: "calculation", ..self }
    }

    async fn execute(
        &self,
        id: &EffectId,
        request: &ExecuteRequest,
    ) -> Result<SandboxExecution, SandboxFailure> {
        let inputs = self.inputs(request).await?;
        let labels = SandboxLabels::of_effect(&self.run_id, id).with("stage", self.stage);
        let job = ExecutionJob { labels: &labels, request, inputs };
        let started = Instant::now();
        let ExecutionOutput { mut execution, files } = self.executor.execute(job).await?;
        let exit_code = match execution.exit {
            ExecutionExit::Exited { code } => Some(code),
            ExecutionExit::Signalled { .. }
            | ExecutionExit::TimedOut
            | ExecutionExit::OutOfMemory
            | ExecutionExit::SandboxDied { .. } => None,
        };
        let duration_ms = elapsed_ms(started);
        tracing::info!(target: "moothall::run", exit_code, duration_ms, "execution complete");
        self.store_files(&mut execution, files).await?;
        Ok(execution)
    }

    async fn inputs(
        &self,
        request: &ExecuteRequest,
    ) -> Result<BTreeMap<GuestPath, Vec<u8>>, SandboxFailure> {
        let mut inputs = BTreeMap::new();
        for (path, file) in &request.inputs {
            let found = self.store.artifact(&self.run_id, &file.sha256).await;
            let found = found
                .map_err(|error| failed(SandboxFailureKind::Request, format!("{path}: {error}")))?;
            let bytes = match found {
                Some(bytes) => Some(bytes),
                None => self.gathered_facts(file).await,
            };
            let bytes = bytes.ok_or_else(|| {
                let detail = format!("{path} is not among the files of the run");
                failed(SandboxFailureKind::Request, detail)
            })?;
            inputs.insert(path.clone(), bytes);
        }
        Ok(inputs)
    }

    /// The facts that a calculation reads. They follow from the gathered evidence in the journal,
    /// so they are not stored again.
    async fn gathered_facts(&self, file: &FileRef) -> Option<Vec<u8>> {
        let ids = [GATHER_ID.parse().ok()?];
        let journal = self.store.journal_entries(&self.run_id, &ids).await.ok()?;
        let gathered = journal.into_values().next()?.result;
        let EffectResult::Gathered(evidence) = gathered else { return None };
        let bytes = calculation_facts(evidence.sheet.as_ref());
        (FileRef::of(&bytes) == *file).then_some(bytes)
    }

    /// Stores the output files and lists exactly those in the execution.
    async fn store_files(
        &self,
        execution: &mut SandboxExecution,
        files: BTreeMap<GuestPath, Vec<u8>>,
    ) -> Result<(), SandboxFailure> {
        execution.files.clear();
        for (path, bytes) in files {
            if bytes.len() > MAX_ARTIFACT_BYTES {
                let message = format!("{path}: larger than {MAX_ARTIFACT_BYTES} bytes");
                execution.left_behind.push(message);
                continue;
            }
            let stored = self.store.keep_artifact(&self.run_id, &bytes).await;
            let sha256 = stored.map_err(|error| {
                failed(SandboxFailureKind::Lost, format!("{path} cannot be kept: {error}"))
            })?;
            execution.files.insert(path, FileRef { sha256, bytes: bytes.len() as u64 });
        }
        Ok(())
    }
}

impl EffectPerformer for SandboxPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        match effect {
            Effect::CallModel(_)
            | Effect::Gather(_)
            | Effect::StartChild(_)
            | Effect::AskPerson(_)
            | Effect::Draft(_) => self.models.perform(id, effect),
            Effect::Execute(request) => Box::pin(async move {
                let started = Instant::now();
                let result = match self.execute(id, request).await {
                    Ok(execution) => EffectResult::Executed(Box::new(execution)),
                    Err(failure) => {
                        let kind = failure.kind;
                        tracing::warn!(target: "moothall::run", ?kind, "execution failed");
                        EffectResult::NotExecuted(failure)
                    }
                };
                TimedResult {
                    result,
                    timing: EffectTiming { latency_ms: elapsed_ms(started), tries: 1 },
                }
            }),
        }
    }

    fn spent(&self) -> Option<SpendTotals> {
        self.models.spent()
    }

    fn end_outage_waits(&self) {
        self.models.end_outage_waits();
    }
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn failed(kind: SandboxFailureKind, detail: String) -> SandboxFailure {
    SandboxFailure { kind, detail }
}
