//! Logging to stderr.

use std::sync::Arc;

use moothall_server::{ServerMetrics, SpanLayer};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, registry};

use crate::config::{LogFormat, LogLevel, LogSection};
use crate::{telemetry, terminal};

const OUR_TARGETS: [&str; 8] = [
    "moothall",
    "moothall_core",
    "moothall_engine",
    "moothall_models",
    "moothall_sandbox",
    "moothall_server",
    "moothall_store",
    "moothall_workspace",
];

/// Starts logging, and the export of spans regardless of the log level. Each `-v` raises the
/// configured level by one.
pub(crate) fn start(section: &LogSection, verbose: u8) {
    init(section, verbose, telemetry::take_layer());
}

/// Same as [`start`], and also counts model calls.
pub(crate) fn start_counting(section: &LogSection, verbose: u8, metrics: Arc<ServerMetrics>) {
    let spans = match telemetry::take_layer() {
        Some(spans) => spans.and_counting(metrics),
        None => SpanLayer::counting(metrics),
    };
    init(section, verbose, Some(spans));
}

fn init(section: &LogSection, verbose: u8, spans: Option<SpanLayer>) {
    let levels =
        [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    let names = ["error", "warn", "info", "debug", "trace"];
    let configured = levels.iter().position(|level| *level == section.level).unwrap_or(1);
    let level = names[(configured + usize::from(verbose)).min(names.len() - 1)];
    // Libraries stay at warnings even with -vvv, because their traces contain headers and bodies.
    let directives = OUR_TARGETS.map(|target| format!("{target}={level}"));
    let filter = EnvFilter::new(format!("warn,{}", directives.join(",")));
    let layer = fmt::layer()
        .with_writer(|| terminal::LogOutput)
        // Otherwise it would report on stderr that stderr is closed, and panic.
        .log_internal_errors(false);
    let layer = match section.format {
        LogFormat::Pretty => {
            let color = terminal::stderr_has_colour();
            layer.with_ansi(color).with_target(false).without_time().compact().boxed()
        }
        LogFormat::Json => {
            layer.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
    };
    let ours = OUR_TARGETS.map(|target| format!("{target}={}", LevelFilter::INFO));
    let spans = spans.map(|spans| spans.with_filter(EnvFilter::new(ours.join(","))));
    // Only tests that share a process start logging twice; the first start wins.
    let _ = registry().with(layer.with_filter(filter)).with(spans).try_init();
}
