//! Converts `tracing` spans to OTLP.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use tracing_subscriber::{Layer, Registry};

use super::encode::{FinishedSpan, SpanKind};
use super::traceparent::{span_id_of_run, trace_id_of_run};
use super::{ServerMetrics, TraceParent};

/// Allowlist of exported fields with their OpenTelemetry names. All other fields stay in the
/// process, so new span fields are private by default.
const FIELDS: &[(&str, &str)] = &[
    ("method", "http.request.method"),
    ("route", "http.route"),
    (STATUS, "http.response.status_code"),
    (RUN_ID, "moothall.run_id"),
    ("workflow", "moothall.workflow"),
    ("state", "moothall.run_state"),
    (STAGE, "moothall.stage"),
    (MOVE, "moothall.move"),
    ("effect_id", "moothall.effect_id"),
    (EFFECT_KIND, "moothall.effect_kind"),
    (MODEL, "gen_ai.request.model"),
    ("max_tokens", "gen_ai.request.max_tokens"),
    ("purpose", "moothall.purpose"),
    ("tries", "moothall.tries"),
    ("latency_ms", "moothall.latency_ms"),
    (PROMPT_TOKENS, "gen_ai.usage.input_tokens"),
    (OUTPUT_TOKENS, "gen_ai.usage.output_tokens"),
    ("cache_read_tokens", "gen_ai.usage.cache_read.input_tokens"),
    (COST, "moothall.cost_micro_usd"),
    (TOOL, "gen_ai.tool.name"),
    ("engine", "moothall.sandbox.engine"),
    ("drafts", "moothall.drafts"),
    (KIND, "error.type"),
];

const STATUS: &str = "status";
const MODEL: &str = "model";
const PROMPT_TOKENS: &str = "prompt_tokens";
const OUTPUT_TOKENS: &str = "output_tokens";
const COST: &str = "cost_micro_usd";
const KIND: &str = "kind";
const STAGE: &str = "stage";
const MOVE: &str = "move";
const EFFECT_KIND: &str = "effect_kind";
const TOOL: &str = "tool";
const RUN_ID: &str = "run_id";

/// Names of the spans of requests, of model calls and of tool calls.
pub(crate) const REQUEST: &str = "http_request";
const MODEL_CALL: &str = "model_call";
const TOOL_CALL: &str = "tool_call";

/// Fields that place a span in a trace. They are not exported.
///
/// `traceparent` is the context of the caller. `span_key` gives a span an id that is derived from
/// the run id, and `parent_key` names such a span as the parent. A span with a `span_key` is only
/// the context of other spans, unless it has the times of a span that has already ended.
const TRACEPARENT: &str = "traceparent";
const SPAN_KEY: &str = "span_key";
const PARENT_KEY: &str = "parent_key";
const STARTED_AT: &str = "started_at_ms";
const ENDED_AT: &str = "ended_at_ms";

/// Maximum length of a text field.
const MAX_TEXT_CHARS: usize = 200;

/// Names of providers in the semantic conventions of OpenTelemetry, where they differ from ours.
const PROVIDERS: &[(&str, &str)] = &[("google", "gcp.gemini")];

/// A `tracing` layer that passes spans to a [`SpanExporter`](super::SpanExporter) and counts model calls.
/// It never blocks: if the exporter falls behind, spans are dropped.
#[derive(Debug)]
pub struct SpanLayer {
    export: Option<SpanQueue>,
    metrics: Option<Arc<ServerMetrics>>,
}

#[derive(Debug)]
struct SpanQueue {
    sender: mpsc::Sender<FinishedSpan>,
    /// Number of spans that were dropped.
    lost: Arc<AtomicU64>,
}

impl SpanLayer {
    /// Sends spans to `sender` and counts those it cannot take.
    pub(crate) fn exporting(sender: mpsc::Sender<FinishedSpan>, lost: Arc<AtomicU64>) -> Self {
        Self { export: Some(SpanQueue { sender, lost }), metrics: None }
    }

    /// Counts model calls without exporting spans.
    pub fn counting(metrics: Arc<ServerMetrics>) -> Self {
        Self { export: None, metrics: Some(metrics) }
    }

    /// Also counts model calls.
    #[must_use]
    pub fn and_counting(self, metrics: Arc<ServerMetrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    fn finish(&self, name: &str, open: &OpenSpan) {
        if let Some(metrics) = &self.metrics
            && name == MODEL_CALL
        {
            let number = |field| open.get(field).and_then(Value::as_u64).unwrap_or_default();
            let model = open.text(MODEL).unwrap_or_default();
            let failed = open.get(KIND).is_some();
            let tokens = number(PROMPT_TOKENS).saturating_add(number(OUTPUT_TOKENS));
            metrics.model_call(model, failed, tokens, number(COST));
        }
        if let Some(SpanQueue { sender, lost }) = &self.export
            && !open.is_context_only
            // If the channel is full or closed, drop the span instead of blocking the run.
            && sender.try_send(open.to_finished(name)).is_err()
        {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The context of the current span, for a run that this span starts: the span itself if it is
/// exported, otherwise its remote caller.
pub fn current_trace_parent() -> Option<TraceParent> {
    tracing::Span::current()
        .with_subscriber(|(id, dispatch)| {
            let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
            let extensions = span.extensions();
            let open = extensions.get::<OpenSpan>()?;
            match open.is_exported {
                true => Some(TraceParent { trace_id: open.trace_id, span_id: open.span_id }),
                false => open.caller,
            }
        })
        .flatten()
}

/// State of an open span.
struct OpenSpan {
    trace_id: u128,
    span_id: u64,
    parent_id: Option<u64>,
    /// The caller in another process, from a request.
    caller: Option<TraceParent>,
    /// The run that the span belongs to, if it or a span above it names one with a key.
    run_id: Option<String>,
    began_at_ns: u64,
    ended_at_ns: Option<u64>,
    fields: Vec<(&'static str, Value)>,
    is_context_only: bool,
    is_exported: bool,
    /// Already exported. A request's span ends with its response, even if the work that it started
    /// continues.
    is_finished: bool,
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl OpenSpan {
    fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn to_finished(&self, name: &str) -> FinishedSpan {
        let mut attributes: Vec<(&'static str, Value)> = Vec::new();
        for (field, value) in &self.fields {
            let Some((_, key)) = FIELDS.iter().find(|(known, _)| known == field) else { continue };
            attributes.push((key, value.clone()));
        }
        let server_failed =
            self.get(STATUS).and_then(Value::as_u64).is_some_and(|status| status >= 500);
        let with_text = |what: &str, field| match self.text(field) {
            Some(text) => format!("{what} {text}"),
            None => what.to_owned(),
        };
        let mut kind = SpanKind::Internal;
        let exported_name = match name {
            MODEL_CALL => {
                kind = SpanKind::Client;
                let full = self.text(MODEL).unwrap_or_default();
                let (provider, model) = full.split_once('/').unwrap_or((full, full));
                let known = PROVIDERS.iter().find(|(ours, _)| *ours == provider);
                let provider = known.map_or(provider, |(_, theirs)| theirs);
                attributes.retain(|(key, _)| *key != "gen_ai.request.model");
                attributes.push(("gen_ai.request.model", json!(model)));
                attributes.push(("gen_ai.provider.name", json!(provider)));
                attributes.push(("gen_ai.operation.name", json!("chat")));
                format!("chat {model}")
            }
            TOOL_CALL => {
                attributes.push(("gen_ai.operation.name", json!("execute_tool")));
                with_text("execute_tool", TOOL)
            }
            REQUEST => {
                kind = SpanKind::Server;
                name.to_owned()
            }
            "stage" => with_text(name, STAGE),
            "effect" => self.text(EFFECT_KIND).unwrap_or(name).to_owned(),
            _ => name.to_owned(),
        };
        FinishedSpan {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent_id: self.parent_id,
            name: exported_name,
            kind,
            started_at_ns: self.began_at_ns,
            ended_at_ns: self.ended_at_ns.unwrap_or_else(now_ns),
            attributes,
            has_failed: server_failed || self.get(KIND).is_some(),
        }
    }
}

/// Collects the exported fields and the fields that place a span in a trace.
#[derive(Default)]
struct SpanFieldVisitor {
    fields: Vec<(&'static str, Value)>,
    caller: Option<TraceParent>,
    run_id: Option<String>,
    span_key: Option<String>,
    parent_key: Option<String>,
    started_at_ms: Option<u64>,
    ended_at_ms: Option<u64>,
}

impl SpanFieldVisitor {
    fn take(&mut self, field: &Field, value: Value) {
        if let Some((name, _)) = FIELDS.iter().find(|(name, _)| *name == field.name()) {
            self.fields.retain(|(existing, _)| existing != name);
            self.fields.push((*name, value));
        }
    }

    fn take_text(&mut self, field: &Field, text: &str) {
        match field.name() {
            TRACEPARENT => self.caller = TraceParent::parse(text),
            SPAN_KEY => self.span_key = Some(text.to_owned()),
            PARENT_KEY => self.parent_key = Some(text.to_owned()),
            RUN_ID => self.run_id = Some(text.to_owned()),
            _ => {}
        }
        let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect();
        self.take(field, Value::String(text));
    }
}

/// Whether a field is exported or places the span in a trace.
fn is_used(name: &str) -> bool {
    [TRACEPARENT, SPAN_KEY, PARENT_KEY].contains(&name)
        || FIELDS.iter().any(|(known, _)| *known == name)
}

impl Visit for SpanFieldVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Formatting can be expensive, so only format the fields that are used.
        if is_used(field.name()) {
            self.take_text(field, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if is_used(field.name()) {
            self.take_text(field, value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            STARTED_AT => self.started_at_ms = Some(value),
            ENDED_AT => self.ended_at_ms = Some(value),
            _ => self.take(field, Value::from(value)),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, Value::from(value));
    }
}

/// What a new span takes over from the span above it.
struct SpanAbove {
    trace_id: u128,
    span_id: u64,
    run_id: Option<String>,
}

impl SpanFieldVisitor {
    fn open(self, above: Option<SpanAbove>, random: [u8; 24], is_exported: bool) -> OpenSpan {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |id: u128, b| id << 8 | u128::from(*b));
        let (trace, span) = random.split_at(16);
        let random_span = u64::try_from(number(span)).unwrap_or(1).max(1);
        let (above_trace, above_span, above_run) = match above {
            Some(above) => (Some(above.trace_id), Some(above.span_id), above.run_id),
            None => (None, None, None),
        };
        let has_key = self.span_key.is_some() || self.parent_key.is_some();
        // With a key, a span belongs to the trace of the run, whatever is above it.
        let run_id = if has_key { self.run_id.or_else(|| above_run.clone()) } else { above_run };
        let named_run = run_id.as_deref().filter(|_| has_key);
        let span_id = match (named_run, &self.span_key) {
            (Some(run), Some(key)) => span_id_of_run(run, key),
            _ => random_span,
        };
        let caller_trace = self.caller.map(|caller| caller.trace_id);
        let (trace_id, parent_id) = match named_run {
            Some(run) => {
                let is_same_run = self.span_key.is_none();
                let trace = caller_trace.or_else(|| above_trace.filter(|_| is_same_run));
                let parent = match &self.parent_key {
                    Some(key) => Some(span_id_of_run(run, key)),
                    None => self.caller.map(|caller| caller.span_id),
                };
                (trace.unwrap_or_else(|| trace_id_of_run(run)), parent)
            }
            None => (
                caller_trace.or(above_trace).unwrap_or_else(|| number(trace).max(1)),
                self.caller.map(|caller| caller.span_id).or(above_span),
            ),
        };
        let ns = |ms: u64| ms.saturating_mul(1_000_000);
        OpenSpan {
            trace_id,
            span_id,
            parent_id,
            caller: self.caller,
            is_context_only: self.span_key.is_some() && self.started_at_ms.is_none(),
            run_id,
            began_at_ns: self.started_at_ms.map_or_else(now_ns, ns),
            ended_at_ns: self.ended_at_ms.map(ns),
            fields: self.fields,
            is_exported,
            is_finished: false,
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut reading = SpanFieldVisitor::default();
        attributes.record(&mut reading);
        let above = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<OpenSpan>().map(|open| SpanAbove {
                trace_id: open.trace_id,
                span_id: open.span_id,
                run_id: open.run_id.clone(),
            })
        });
        let mut random = [0; 24];
        if getrandom::fill(&mut random).is_err() {
            return;
        }
        span.extensions_mut().insert(reading.open(above, random, self.export.is_some()));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut reading = SpanFieldVisitor::default();
        values.record(&mut reading);
        let answered = reading.fields.iter().any(|(name, _)| *name == STATUS);
        add(&span, reading);
        if answered && span.name() == REQUEST {
            self.finish_once(&span);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        // The result of a model call is reported by an event in its span.
        if let Some(span) = context.event_span(event)
            && span.name() == MODEL_CALL
        {
            let mut reading = SpanFieldVisitor::default();
            event.record(&mut reading);
            // Warnings report failed attempts that may still be retried.
            if *event.metadata().level() != tracing::Level::WARN {
                add(&span, reading);
            }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id) {
            self.finish_once(&span);
        }
    }
}

impl SpanLayer {
    fn finish_once<S: for<'a> LookupSpan<'a>>(&self, span: &SpanRef<'_, S>) {
        let mut extensions = span.extensions_mut();
        if let Some(open) = extensions.get_mut::<OpenSpan>()
            && !open.is_finished
        {
            open.is_finished = true;
            self.finish(span.name(), open);
        }
    }
}

fn add<S: for<'a> LookupSpan<'a>>(span: &SpanRef<'_, S>, reading: SpanFieldVisitor) {
    if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
        for (name, value) in reading.fields {
            open.fields.retain(|(existing, _)| *existing != name);
            open.fields.push((name, value));
        }
    }
}
