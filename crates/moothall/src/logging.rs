//! What the program tells about its own work, on stderr.

use moothall_server::Spans;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, registry};

use crate::config::{LogFormat, LogLevel, LogSection};
use crate::terminal;

const OURS: [&str; 7] = [
    "moothall",
    "moothall_core",
    "moothall_engine",
    "moothall_models",
    "moothall_sandbox",
    "moothall_server",
    "moothall_store",
];

/// Starts logging. Each `-v` raises the configured level by one.
pub(crate) fn start(section: &LogSection, verbose: u8) {
    init(section, verbose, None);
}

/// The same, and somebody listens to spans, whatever is logged.
pub(crate) fn start_with(section: &LogSection, verbose: u8, spans: Spans) {
    init(section, verbose, Some(spans));
}

fn init(section: &LogSection, verbose: u8, spans: Option<Spans>) {
    let levels =
        [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    let words = ["error", "warn", "info", "debug", "trace"];
    let configured = levels.iter().position(|level| *level == section.level).unwrap_or(1);
    let level = words[(configured + usize::from(verbose)).min(words.len() - 1)];
    // Libraries stay at warnings even with -vvv: their traces hold headers and bodies.
    let directives = OURS.map(|target| format!("{target}={level}"));
    let filter = EnvFilter::new(format!("warn,{}", directives.join(",")));
    let layer = fmt::layer()
        .with_writer(|| terminal::LogOutput)
        // It would tell on stderr that stderr is gone, and panic.
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
    let ours = OURS.map(|target| format!("{target}={}", LevelFilter::INFO));
    let spans = spans.map(|spans| spans.with_filter(EnvFilter::new(ours.join(","))));
    // A second start happens only in tests that share a process; the first one stays.
    let _ = registry().with(layer.with_filter(filter)).with(spans).try_init();
}
