//! The spans of a run, for OpenTelemetry.
//!
//! A run, its stages and its debates can outlast a process, so their spans are written when the run
//! has ended, from the times of its events. Until then, the spans of effects refer to them by keys:
//! the layer that exports spans derives the ids of keys from the run id.

use std::collections::BTreeMap;

use moothall_core::{Effect, EffectId, RunEvent, RunEventBody, RunId};
use moothall_store::{RunRow, Store, StoredEvent};
use tracing::{Level, Span};

/// Key of the span of the run itself.
const RUN: &str = "run";

/// Stages of a consultation, by the number of their layer.
const STAGES: [&str; 5] = ["gather", "infer", "analyze", "debate", "rank"];

/// The stage in which debates run.
const DEBATE_LAYER: u8 = 3;

/// Events per page when they are read back.
const PAGE: u32 = 1_000;

/// The trace of one run.
#[derive(Debug, Clone)]
pub(crate) struct RunTrace {
    run_id: RunId,
    /// The span that started the run, as a `traceparent`.
    caller: Option<String>,
}

/// The key of the span above an effect: the current stage or a debate.
#[derive(Debug, Clone)]
pub(crate) struct ParentKey(String);

impl Default for ParentKey {
    fn default() -> Self {
        Self(RUN.to_owned())
    }
}

impl ParentKey {
    /// The span of the child that this effect started.
    pub(crate) fn of_child(id: &EffectId) -> Self {
        Self(id.to_string())
    }

    /// Continues with the stage that these events start, if any.
    pub(crate) fn follow(&mut self, events: &[RunEvent]) {
        for event in events {
            if let RunEventBody::LayerStart { layer, .. } = event.body {
                *self = Self(layer_key(layer));
            }
        }
    }
}

fn layer_key(layer: u8) -> String {
    format!("layer-{layer}")
}

impl RunTrace {
    pub(crate) fn new(run_id: &RunId, caller: Option<String>) -> Self {
        Self { run_id: run_id.clone(), caller }
    }

    /// The trace of a stored run.
    pub(crate) fn of_row(row: &RunRow) -> Self {
        let spec = row.spec.read().ok();
        Self::new(&row.run_id, spec.and_then(|spec| spec.settings().trace_parent.clone()))
    }

    /// The context of everything that a process does for the run. It is not exported.
    pub(crate) fn context(&self) -> Span {
        let Self { run_id, caller } = self;
        let caller = caller.as_deref();
        tracing::info_span!(target: "moothall::run", "run", %run_id, span_key = RUN, traceparent = caller)
    }

    /// The span of an effect, within [`Self::context`].
    pub(crate) fn effect(parent: &ParentKey, id: &EffectId, effect: &Effect) -> Span {
        let effect_kind = match effect {
            Effect::CallModel(_) => "call_model",
            Effect::Execute(_) => "execute",
            Effect::Gather(_) => "gather",
            Effect::StartChild(_) => "start_child",
            Effect::AskPerson(_) => "ask_person",
            Effect::Draft(_) => "draft",
        };
        let (parent_key, effect_id) = (parent.0.as_str(), id.as_str());
        tracing::info_span!(target: "moothall::run", "effect", effect_id, effect_kind, parent_key)
    }
}

/// Writes the spans of a run that has just ended: the run, its stages and its debates. A store that
/// cannot be read loses these spans and nothing else.
pub async fn write_run_spans(store: &dyn Store, run_id: &RunId) {
    if !tracing::enabled!(target: "moothall::run", Level::INFO) {
        return;
    }
    let Ok(Some(row)) = store.run(run_id).await else { return };
    let mut events: Vec<StoredEvent> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        match store.events(run_id, after, PAGE).await {
            Ok(page) if !page.is_empty() => events.extend(page),
            _ => break,
        }
    }
    let trace = RunTrace::of_row(&row);
    trace.write_stages(&events);
    trace.write_debates(&events);
    let ended_at_ms = events.last().map_or(row.updated_at_ms, |event| event.at_ms);
    let (RunTrace { run_id, caller }, workflow) = (&trace, row.spec.workflow());
    let (caller, state) = (caller.as_deref(), row.state);
    tracing::info_span!(
        target: "moothall::run", parent: None, "run",
        %run_id, span_key = RUN, traceparent = caller,
        started_at_ms = row.created_at_ms, ended_at_ms, workflow, %state,
    );
}

impl RunTrace {
    fn write_stages(&self, events: &[StoredEvent]) {
        let last = events.last().map_or(0, |event| event.at_ms);
        let (run_id, caller) = (&self.run_id, self.caller.as_deref());
        for start in events {
            let RunEventBody::LayerStart { layer, .. } = start.event.body else { continue };
            let is_end = |stored: &&StoredEvent| matches!(stored.event.body, RunEventBody::LayerComplete { layer: ended, .. } if ended == layer);
            let ended_at_ms = events.iter().find(is_end).map_or(last, |stored| stored.at_ms);
            let stage = STAGES.get(usize::from(layer)).copied().unwrap_or("other");
            let span_key = layer_key(layer);
            tracing::info_span!(
                target: "moothall::run", parent: None, "stage",
                %run_id, span_key, parent_key = RUN, traceparent = caller,
                started_at_ms = start.at_ms, ended_at_ms, stage,
            );
        }
    }

    fn write_debates(&self, events: &[StoredEvent]) {
        let mut times: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for stored in events {
            if let RunEventBody::SandboxRound { move_id, .. }
            | RunEventBody::SandboxTurn { move_id, .. }
            | RunEventBody::SandboxScored { move_id, .. } = &stored.event.body
            {
                let (_, end) = times.entry(move_id).or_insert((stored.at_ms, stored.at_ms));
                *end = stored.at_ms;
            }
        }
        let (run_id, caller) = (&self.run_id, self.caller.as_deref());
        let parent_key = layer_key(DEBATE_LAYER);
        for (name, (started_at_ms, ended_at_ms)) in times {
            tracing::info_span!(
                target: "moothall::run", parent: None, "debate",
                %run_id, span_key = name, parent_key, traceparent = caller,
                started_at_ms, ended_at_ms, "move" = name,
            );
        }
    }
}
