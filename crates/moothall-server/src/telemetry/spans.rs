//! Converts `tracing` spans to OTLP.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::{ServerMetrics, TraceParent};

/// Allowlist of exported fields with their OpenTelemetry names. All other fields stay in the
/// process, so new span fields are private by default.
const FIELDS: &[(&str, &str)] = &[
    ("method", "http.request.method"),
    ("route", "http.route"),
    (STATUS, "http.response.status_code"),
    ("run_id", "moothall.run_id"),
    ("effect_id", "moothall.effect_id"),
    (MODEL, "gen_ai.request.model"),
    ("purpose", "moothall.purpose"),
    ("tries", "moothall.tries"),
    ("latency_ms", "moothall.latency_ms"),
    (PROMPT_TOKENS, "gen_ai.usage.input_tokens"),
    (OUTPUT_TOKENS, "gen_ai.usage.output_tokens"),
    ("cache_read_tokens", "gen_ai.usage.cache_read.input_tokens"),
    (COST, "moothall.cost_micro_usd"),
    (KIND, "error.type"),
];

const STATUS: &str = "status";
const MODEL: &str = "model";
const PROMPT_TOKENS: &str = "prompt_tokens";
const OUTPUT_TOKENS: &str = "output_tokens";
const COST: &str = "cost_micro_usd";
const KIND: &str = "kind";

/// Names of the spans of requests and of model calls.
pub(crate) const REQUEST: &str = "http_request";
const MODEL_CALL: &str = "model_call";

/// Field of a request span with the caller's trace context. It is read but not exported.
const TRACEPARENT: &str = "traceparent";

/// Maximum length of a text field.
const MAX_TEXT_CHARS: usize = 200;

/// A `tracing` layer that passes spans to a [`SpanExporter`](super::SpanExporter) and counts model calls.
/// It never blocks: if the exporter falls behind, spans are dropped.
#[derive(Debug)]
pub struct SpanLayer {
    sender: Option<mpsc::Sender<Value>>,
    metrics: Option<Arc<ServerMetrics>>,
}

impl SpanLayer {
    /// Sends spans to `sender`.
    pub(crate) fn new(sender: mpsc::Sender<Value>) -> Self {
        Self { sender: Some(sender), metrics: None }
    }

    /// Counts model calls without exporting spans.
    pub fn counting(metrics: Arc<ServerMetrics>) -> Self {
        Self { sender: None, metrics: Some(metrics) }
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
            let model = open.get(MODEL).and_then(Value::as_str).unwrap_or_default();
            let failed = open.get(KIND).is_some();
            let tokens = number(PROMPT_TOKENS).saturating_add(number(OUTPUT_TOKENS));
            metrics.model_call(model, failed, tokens, number(COST));
        }
        if let Some(sender) = &self.sender {
            // If the channel is full or closed, drop the span instead of blocking the run.
            let _ = sender.try_send(open.to_otlp(name));
        }
    }
}

/// State of an open span.
struct OpenSpan {
    trace_id: u128,
    span_id: u64,
    parent_id: Option<u64>,
    began_at: SystemTime,
    fields: Vec<(&'static str, Value)>,
    /// Already exported. A request's span ends with its response, even if the work that it started
    /// continues.
    is_finished: bool,
}

impl OpenSpan {
    fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    fn to_otlp(&self, name: &str) -> Value {
        let nanos = |time: SystemTime| {
            time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
        };
        let attributes: Vec<Value> =
            self.fields.iter().filter_map(|(field, value)| attribute(field, value)).collect();
        let server_failed =
            self.get(STATUS).and_then(Value::as_u64).is_some_and(|status| status >= 500);
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace_id),
            "spanId": format!("{:016x}", self.span_id),
            "name": name,
            // OTLP span kinds: server, client, internal.
            "kind": match name { REQUEST => 2, MODEL_CALL => 3, _ => 1 },
            "startTimeUnixNano": nanos(self.began_at),
            "endTimeUnixNano": nanos(SystemTime::now()),
            "attributes": attributes,
            "status": if server_failed || self.get(KIND).is_some() { json!({ "code": 2 }) } else { json!({}) },
        });
        if let Some(parent) = self.parent_id {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    }
}

fn attribute(field: &str, value: &Value) -> Option<Value> {
    let (_, key) = FIELDS.iter().find(|(name, _)| *name == field)?;
    // OTLP JSON encodes integers as strings.
    let value = match value {
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Bool(truth) => json!({ "boolValue": truth }),
        other => json!({ "stringValue": other.as_str().unwrap_or_default() }),
    };
    Some(json!({ "key": key, "value": value }))
}

/// Collects the exported fields and the caller's trace context.
#[derive(Default)]
struct SpanFieldVisitor {
    fields: Vec<(&'static str, Value)>,
    parent: Option<TraceParent>,
}

impl SpanFieldVisitor {
    fn take(&mut self, field: &Field, value: Value) {
        if let Some((name, _)) = FIELDS.iter().find(|(name, _)| *name == field.name()) {
            self.fields.retain(|(existing, _)| existing != name);
            self.fields.push((*name, value));
        }
    }

    fn take_text(&mut self, field: &Field, text: &str) {
        if field.name() == TRACEPARENT {
            self.parent = TraceParent::parse(text);
        }
        let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect();
        self.take(field, Value::String(text));
    }
}

impl Visit for SpanFieldVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Formatting can be expensive, so only format the fields that are used.
        if field.name() == TRACEPARENT || FIELDS.iter().any(|(name, _)| *name == field.name()) {
            self.take_text(field, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take_text(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, Value::from(value));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut reading = SpanFieldVisitor::default();
        attributes.record(&mut reading);
        let above = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions
                .get::<OpenSpan>()
                .map(|open| TraceParent { trace_id: open.trace_id, span_id: open.span_id })
        });
        let above = reading.parent.or(above);
        let mut random = [0; 24];
        if getrandom::fill(&mut random).is_err() {
            return;
        }
        let [trace_id, span_id] = [&random[..16], &random[16..]]
            .map(|bytes| bytes.iter().fold(0, |id: u128, byte| id << 8 | u128::from(*byte)));
        span.extensions_mut().insert(OpenSpan {
            trace_id: above.map_or_else(|| trace_id.max(1), |above| above.trace_id),
            span_id: u64::try_from(span_id).unwrap_or(1).max(1),
            parent_id: above.map(|above| above.span_id),
            began_at: SystemTime::now(),
            fields: reading.fields,
            is_finished: false,
        });
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
