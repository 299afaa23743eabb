//! Metrics for Prometheus and spans for an OpenTelemetry collector.
//!
//! Spans come from `tracing` and are exported as OTLP over HTTP with the existing HTTP client. The
//! standard exporter would add eleven crates, and would end a request's span only when the run that
//! it started has ended.
//!
//! All processes that drive a run share one trace. The ids of the spans that outlive a process (the
//! run, its stages, its debates) are derived from the run id, so a process can name a parent that
//! another process will export.

mod encode;
mod metrics;
mod otlp;
mod spans;
mod traceparent;

pub use self::metrics::ServerMetrics;
pub(crate) use self::metrics::{count, show};
pub use self::otlp::{OtlpProtocol, OtlpSettings, SpanExporter, exporter};
pub use self::spans::{SpanLayer, current_trace_parent};
pub use self::traceparent::TraceParent;
