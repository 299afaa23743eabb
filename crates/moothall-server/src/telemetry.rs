//! What a server tells about its work: numbers for Prometheus, spans for a collector.
//!
//! Spans are those of `tracing`, which the whole program has anyway. They leave as OTLP over HTTP in
//! its JSON form, by the HTTP client that is there already: the usual exporter would add eleven crates
//! and end the span of a request only when the run that it started has ended.

mod metrics;
mod otlp;
mod spans;
mod traceparent;

pub use self::metrics::Metrics;
pub(crate) use self::metrics::{count, show};
pub use self::otlp::{Exporter, exporter};
pub use self::spans::Spans;
pub(crate) use self::traceparent::TraceParent;
