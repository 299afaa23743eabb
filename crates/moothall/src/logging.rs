//! What the program tells about its own work, on stderr.

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogLevel, LogSection};
use crate::terminal;

/// Starts logging. Each `-v` raises the configured level by one.
pub(crate) fn start(section: &LogSection, verbose: u8) {
    let levels =
        [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    let words = ["error", "warn", "info", "debug", "trace"];
    let configured = levels.iter().position(|level| *level == section.level).unwrap_or(1);
    let level = words[(configured + usize::from(verbose)).min(words.len() - 1)];
    // Libraries stay at warnings even with -vvv: their traces hold headers and bodies.
    let ours = ["moothall", "moothall_core", "moothall_engine", "moothall_models"];
    let ours = ours.iter().chain(&["moothall_sandbox", "moothall_store"]);
    let directives = ours.map(|target| format!("{target}={level}")).collect::<Vec<_>>();
    let filter = EnvFilter::new(format!("warn,{}", directives.join(",")));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| terminal::LogOutput)
        // It would tell on stderr that stderr is gone, and panic.
        .log_internal_errors(false);
    // A second start happens only in tests that share a process; the first one stays.
    let _ = match section.format {
        LogFormat::Pretty => {
            let color = terminal::stderr_has_colour();
            builder.with_ansi(color).with_target(false).without_time().compact().try_init()
        }
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init(),
    };
}
