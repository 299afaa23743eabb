//! Metrics for Prometheus and spans for an OpenTelemetry collector.
//!
//! Spans come from `tracing` and are exported as OTLP over HTTP in JSON with the existing HTTP
//! client. The standard exporter would add eleven crates, and would end a request's span only when
//! the run that it started has ended.

mod metrics;
mod otlp;
mod spans;
mod traceparent;

pub use self::metrics::ServerMetrics;
pub(crate) use self::metrics::{count, show};
pub use self::otlp::{SpanExporter, exporter};
pub use self::spans::SpanLayer;
pub(crate) use self::traceparent::TraceParent;
