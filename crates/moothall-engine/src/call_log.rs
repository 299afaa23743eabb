//! The model calls of a stored run: the log, read step by step, and single calls with their prompts.

use std::collections::BTreeMap;

use moothall_core::consult::Consult;
use moothall_core::edit::EditWorkflow;
use moothall_core::program::{OutputExpectation, ProgramInput, ProgramRun};
use moothall_core::receipt::EffectTiming;
use moothall_core::replay::{RecordedResult, request_of};
use moothall_core::structured::OutputCheck;
use moothall_core::view::{CallDetail, RunCalls};
use moothall_core::{
    Effect, EffectId, EffectResult, RunEventBody, RunId, RunSpec, Workflow, with_causes,
};
use moothall_models::{SchemaCheck, UnusableSchema};
use moothall_store::{Store, StoreError};
use serde_json::Value;

use crate::record::RunRecord;

/// Events read per page.
const PAGE: u32 = 1000;

/// Why the workflow of a run cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRunSpec {
    /// The input of the workflow is invalid.
    #[error("{0}")]
    Input(String),
    /// The schema of the expected output is invalid.
    #[error("invalid JSON schema for the expected output")]
    Schema(#[source] UnusableSchema),
}

impl InvalidRunSpec {
    fn input(error: &dyn std::error::Error) -> Self {
        Self::Input(error.to_string())
    }
}

/// The initial workflow of a run.
pub fn workflow_of(spec: &RunSpec) -> Result<Box<dyn Workflow + Send>, InvalidRunSpec> {
    Ok(match spec {
        RunSpec::Consult(spec) => Box::new(
            Consult::new(spec.input.clone()).map_err(|error| InvalidRunSpec::input(&error))?,
        ),
        RunSpec::Program(spec) => Box::new(program_workflow(spec.input.clone())?),
        RunSpec::Edit(spec) => Box::new(
            EditWorkflow::new(spec.input.clone()).map_err(|error| InvalidRunSpec::input(&error))?,
        ),
    })
}

fn program_workflow(input: ProgramInput) -> Result<ProgramRun, InvalidRunSpec> {
    let check: Box<dyn OutputCheck> = match &input.contract.expect {
        Some(OutputExpectation::Schema { schema }) => {
            Box::new(SchemaCheck::new(schema).map_err(InvalidRunSpec::Schema)?)
        }
        Some(OutputExpectation::Text { .. } | OutputExpectation::Pattern { .. }) | None => {
            Box::new(|_: &Value| Vec::new())
        }
    };
    ProgramRun::new(input, check).map_err(|error| InvalidRunSpec::input(&error))
}

/// Applies all events of a run that `calls` does not include yet.
///
/// Errors: [`StoreError::UnknownRun`].
pub async fn update_calls(
    store: &dyn Store,
    run_id: &RunId,
    calls: &mut RunCalls,
) -> Result<(), StoreError> {
    loop {
        let page = store.events(run_id, calls.as_of_seq, PAGE).await?;
        if page.is_empty() {
            return Ok(());
        }
        let called = |body: &RunEventBody| call_of(body).cloned();
        let ids: Vec<EffectId> = page.iter().filter_map(|one| called(&one.event.body)).collect();
        // Most pages of a log that is followed have no call.
        let timings = match ids.is_empty() {
            true => BTreeMap::new(),
            false => store.timings(run_id, &ids).await?,
        };
        for stored in page {
            let body = &stored.event.body;
            let timing = call_of(body).and_then(|id| timings.get(id)).copied();
            calls.apply(stored.seq, stored.at_ms, body, timing);
        }
    }
}

/// The call that ended with this event, if any.
fn call_of(body: &RunEventBody) -> Option<&EffectId> {
    match body {
        RunEventBody::ModelReplied { effect_id, .. }
        | RunEventBody::ModelFailed { effect_id, .. } => Some(effect_id),
        _ => None,
    }
}

impl RunRecord {
    /// The model calls of the run, without the inherited calls of a fork.
    pub fn calls(&self) -> RunCalls {
        let mut calls = RunCalls::default();
        for stored in &self.events {
            let body = &stored.event.body;
            let timing = |id| -> Option<EffectTiming> { Some(self.journal.get(id)?.timing) };
            calls.apply(stored.seq, stored.at_ms, body, call_of(body).and_then(timing));
        }
        calls
    }

    /// The text of the answer of a call, as the model gave it.
    pub fn answer(&self, id: &EffectId) -> Option<&str> {
        match self.result(id)? {
            EffectResult::ModelReplied(reply) => Some(&reply.text),
            _ => None,
        }
    }

    /// One call with its prompt and answer; `None` if the run has no such finished call.
    pub fn call_detail(&self, id: &EffectId) -> Option<CallDetail> {
        let call = self.calls().find(id)?.clone();
        let request = self.request_of(id);
        let result = self.result(id);
        let request = match &request {
            Ok(Effect::CallModel(request)) => Ok(&**request),
            Ok(_) => Err("the effect is not a model call".to_owned()),
            Err(problem) => Err(problem.clone()),
        };
        Some(CallDetail::of(call, request, result))
    }

    /// Builds the request of an effect again. The journal has only its hash, which must match.
    fn request_of(&self, id: &EffectId) -> Result<Effect, String> {
        let spec = self.row.spec.read().map_err(|error| with_causes(error))?;
        let workflow = workflow_of(spec).map_err(|error| with_causes(&error))?;
        let known = |id: &EffectId| {
            let result = self.result(id)?;
            Some(RecordedResult { request_sha256: None, result })
        };
        let other_version = || {
            let build = &self.row.build;
            format!("the prompt cannot be rebuilt: another version of moothall ({build}) wrote it")
        };
        let effect = request_of(workflow, known, id).map_err(|_| other_version())?;
        let effect = effect.ok_or_else(other_version)?;
        let hash = effect.request_hash().map_err(|error| with_causes(&error))?;
        let is_same = self.journal.get(id).is_some_and(|entry| entry.request_sha256 == hash);
        if is_same { Ok(effect) } else { Err(other_version()) }
    }
}
