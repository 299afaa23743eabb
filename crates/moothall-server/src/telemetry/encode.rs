//! Encodes spans as OTLP, in protobuf or JSON.

use serde_json::{Value, json};

/// A span that has ended. Attribute values are texts, integers and booleans.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedSpan {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    pub(crate) parent_id: Option<u64>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) started_at_ns: u64,
    pub(crate) ended_at_ns: u64,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    pub(crate) has_failed: bool,
}

/// The kind of a span, with its number in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

const SCOPE: &str = "moothall";

/// The status code of a failed span.
const STATUS_ERROR: u64 = 2;

/// The body of a request in JSON.
pub(crate) fn json_body(resource: &[(String, String)], spans: &[FinishedSpan]) -> Vec<u8> {
    let resource: Vec<Value> =
        resource.iter().map(|(key, value)| json_attribute(key, &json!(value))).collect();
    let spans: Vec<Value> = spans.iter().map(json_span).collect();
    let body = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": { "name": SCOPE }, "spans": spans }],
        }]
    });
    body.to_string().into_bytes()
}

fn json_span(span: &FinishedSpan) -> Value {
    let attributes: Vec<Value> =
        span.attributes.iter().map(|(key, value)| json_attribute(key, value)).collect();
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.trace_id),
        "spanId": format!("{:016x}", span.span_id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.started_at_ns.to_string(),
        "endTimeUnixNano": span.ended_at_ns.to_string(),
        "attributes": attributes,
        "status": if span.has_failed { json!({ "code": STATUS_ERROR }) } else { json!({}) },
    });
    if let Some(parent) = span.parent_id {
        encoded["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    encoded
}

fn json_attribute(key: &str, value: &Value) -> Value {
    // OTLP JSON encodes integers as strings.
    let value = match value {
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Bool(truth) => json!({ "boolValue": truth }),
        other => json!({ "stringValue": other.as_str().unwrap_or_default() }),
    };
    json!({ "key": key, "value": value })
}

/// The body of a request in protobuf: an `ExportTraceServiceRequest`.
pub(crate) fn protobuf_body(resource: &[(String, String)], spans: &[FinishedSpan]) -> Vec<u8> {
    let mut attributes = ProtobufMessage::default();
    for (key, value) in resource {
        attributes.message(1, protobuf_attribute(key, &json!(value)));
    }
    let mut scope = ProtobufMessage::default();
    scope.bytes(1, SCOPE.as_bytes());
    let mut scope_spans = ProtobufMessage::default();
    scope_spans.message(1, scope);
    for span in spans {
        scope_spans.message(2, protobuf_span(span));
    }
    let mut resource_spans = ProtobufMessage::default();
    resource_spans.message(1, attributes);
    resource_spans.message(2, scope_spans);
    let mut request = ProtobufMessage::default();
    request.message(1, resource_spans);
    request.0
}

fn protobuf_span(span: &FinishedSpan) -> ProtobufMessage {
    let mut encoded = ProtobufMessage::default();
    encoded.bytes(1, &span.trace_id.to_be_bytes());
    encoded.bytes(2, &span.span_id.to_be_bytes());
    if let Some(parent) = span.parent_id {
        encoded.bytes(4, &parent.to_be_bytes());
    }
    encoded.bytes(5, span.name.as_bytes());
    encoded.varint(6, span.kind as u64);
    encoded.fixed64(7, span.started_at_ns);
    encoded.fixed64(8, span.ended_at_ns);
    for (key, value) in &span.attributes {
        encoded.message(9, protobuf_attribute(key, value));
    }
    if span.has_failed {
        let mut status = ProtobufMessage::default();
        status.varint(3, STATUS_ERROR);
        encoded.message(15, status);
    }
    encoded
}

fn protobuf_attribute(key: &str, value: &Value) -> ProtobufMessage {
    let mut any = ProtobufMessage::default();
    match value {
        // Negative integers are encoded as their two's complement.
        Value::Number(number) => {
            let negative = number.as_i64().map(i64::cast_unsigned);
            any.varint(3, negative.or_else(|| number.as_u64()).unwrap_or_default());
        }
        Value::Bool(truth) => any.varint(2, u64::from(*truth)),
        other => any.bytes(1, other.as_str().unwrap_or_default().as_bytes()),
    }
    let mut attribute = ProtobufMessage::default();
    attribute.bytes(1, key.as_bytes());
    attribute.message(2, any);
    attribute
}

/// A message in the wire format of protobuf.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn varint(&mut self, field: u64, value: u64) {
        self.raw_varint(field << 3);
        self.raw_varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.raw_varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.raw_varint(field << 3 | 2);
        self.raw_varint(u64::try_from(bytes.len()).unwrap_or_default());
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, message: Self) {
        self.bytes(field, &message.0);
    }
}
