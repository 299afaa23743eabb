//! Exports spans to the OpenTelemetry collector of the user, from every command that does work.
//!
//! The exporter has its own thread, so a slow or dead collector never delays a command by more than
//! [`FLUSH_TIMEOUT`], at its end.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use moothall_models::build_http_client;
use moothall_server::{
    OtlpProtocol, OtlpSettings, SpanLayer, TraceParent, current_trace_parent, exporter,
};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Builder as RuntimeBuilder;
use tokio_util::sync::CancellationToken;

use crate::args::{Cli, CliCommand};
use crate::error::CliError;
use crate::terminal::{self, YELLOW};

/// How long a command waits at its end until its spans are sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Default timeout of a request to the collector.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

const URL_HINT: &str = "use the URL of an OTLP/HTTP collector, such as http://127.0.0.1:4318";

/// The exporter of this process.
static EXPORT: Mutex<Option<RunningExport>> = Mutex::new(None);

struct RunningExport {
    /// Taken when logging starts.
    layer: Option<SpanLayer>,
    closing: CancellationToken,
    /// Disconnected when everything is sent.
    done: Receiver<()>,
}

/// Starts the exporter if the flag or the environment names a collector and the command has spans.
pub(crate) fn start(cli: &Cli) -> Result<(), CliError> {
    let variable = |name: &str| std::env::var(name).ok();
    let settings = match settings(cli.global.otlp.as_deref(), &variable) {
        Ok(settings) => settings,
        // A wrong flag is an error. A wrong variable may be meant for another program.
        Err(error) if cli.global.otlp.is_some() => return Err(error),
        Err(error) if has_spans(cli.command.as_ref()) => {
            let why = &error.message;
            terminal::note(&format!("{YELLOW}warning: no traces are sent: {why}{YELLOW:#}\n"));
            None
        }
        Err(_) => None,
    };
    let Some(settings) = settings.filter(|_| has_spans(cli.command.as_ref())) else {
        return Ok(());
    };
    let failed = "cannot set up the export of traces";
    let client = build_http_client(|builder| {
        builder.timeout(settings.timeout).redirect(reqwest::redirect::Policy::none())
    })
    .map_err(|error| CliError::failed(failed).with_source(error))?;
    let (layer, exporter) = exporter(settings, client);
    let runtime = RuntimeBuilder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(failed).with_source(error))?;
    let closing = CancellationToken::new();
    let (sender, done) = mpsc::channel();
    let stop = closing.clone();
    let export = move || {
        runtime.block_on(exporter.run(stop));
        drop(sender);
    };
    thread::Builder::new()
        .name("traces".to_owned())
        .spawn(export)
        .map_err(|error| CliError::failed(failed).with_source(error))?;
    *lock() = Some(RunningExport { layer: Some(layer), closing, done });
    Ok(())
}

/// The layer that collects spans, for the subscriber of this process.
pub(crate) fn take_layer() -> Option<SpanLayer> {
    lock().as_mut().and_then(|export| export.layer.take())
}

/// Sends the remaining spans, for a limited time.
pub(crate) fn flush() {
    if let Some(export) = lock().take() {
        export.closing.cancel();
        if export.done.recv_timeout(FLUSH_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(target: "moothall::telemetry", "some spans were not exported: the collector does not answer");
        }
    }
}

/// The span that starts a run, as a `traceparent`: a request to the server, or the program that
/// started this command and set `TRACEPARENT`.
pub(crate) fn trace_parent() -> Option<String> {
    let outer = || TraceParent::parse(&std::env::var("TRACEPARENT").ok()?);
    current_trace_parent().or_else(outer).map(|parent| parent.to_string())
}

fn lock() -> std::sync::MutexGuard<'static, Option<RunningExport>> {
    EXPORT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a command calls models, runs programs or judges drafts. The frontend of `moothall mcp`
/// does not: it must have no thread that is not confined, and passes the flag to its parts.
fn has_spans(command: Option<&CliCommand>) -> bool {
    matches!(
        command,
        Some(
            CliCommand::Init(_)
                | CliCommand::Serve(_)
                | CliCommand::Worker(_)
                | CliCommand::Consult(_)
                | CliCommand::Fork(_)
                | CliCommand::Run(_)
                | CliCommand::Resume(_)
                | CliCommand::Cancel(_)
                | CliCommand::Edit(_)
                | CliCommand::Draft(_)
                | CliCommand::Review(_)
                | CliCommand::McpPart(_)
                | CliCommand::Ask(_)
                | CliCommand::Models(_)
                | CliCommand::Exec(_)
        )
    )
}

/// Reads the flag and the `OTEL_*` variables. `None` if no collector is named.
fn settings(
    flag: Option<&str>,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<OtlpSettings>, CliError> {
    let variable = |name: &str| {
        variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    // Variables for traces take precedence over those for all signals.
    let of_traces = |name: &str| {
        variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
            .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    };
    let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"))
        || variable("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter == "none");
    let base = |url: &str| format!("{}/v1/traces", url.trim_end_matches('/'));
    let url = match flag {
        Some(url) => Some(base(url)),
        None if is_disabled => None,
        None => variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|url| base(&url))),
    };
    let Some(url) = url else { return Ok(None) };
    if !Url::parse(&url).is_ok_and(|url| ["http", "https"].contains(&url.scheme())) {
        let name = if flag.is_some() { "--otlp" } else { "OTEL_EXPORTER_OTLP_ENDPOINT" };
        let message = format!("invalid `{name}`: not an HTTP URL");
        return Err(CliError::usage(message).with_hint(URL_HINT));
    }
    let protocol = match of_traces("PROTOCOL").as_deref() {
        None | Some("http/protobuf") => OtlpProtocol::Protobuf,
        Some("http/json") => OtlpProtocol::Json,
        Some(other) => {
            let message = format!("unsupported `OTEL_EXPORTER_OTLP_PROTOCOL`: {other}");
            return Err(CliError::usage(message).with_hint("use `http/protobuf` or `http/json`"));
        }
    };
    let headers =
        of_traces("HEADERS").map_or_else(|| Ok(HeaderMap::new()), |text| headers(&text))?;
    let timeout = of_traces("TIMEOUT").and_then(|ms| ms.parse().ok());
    let timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
    let resource = resource(
        variable("OTEL_SERVICE_NAME"),
        &variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default(),
    );
    Ok(Some(OtlpSettings { url, protocol, headers, resource, timeout }))
}

/// Headers as `name=value,name=value`, with percent-encoded values.
fn headers(text: &str) -> Result<HeaderMap, CliError> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(text) {
        let (name, value) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value));
        let (Ok(name), Ok(mut value)) = (name, value) else {
            // Without the value, which may be a credential.
            return Err(CliError::usage("invalid `OTEL_EXPORTER_OTLP_HEADERS`")
                .with_hint("use `name=value` pairs, separated by commas"));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Attributes of this process. The instance tells the workers of one trace apart.
fn resource(name: Option<String>, attributes: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = vec![
        ("service.name".to_owned(), "moothall".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id".to_owned(), uuid::Uuid::now_v7().to_string()),
    ];
    let named = name.map(|name| ("service.name".to_owned(), name));
    for (key, value) in pairs(attributes).chain(named) {
        all.retain(|(existing, _)| *existing != key);
        all.push((key, value));
    }
    all
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let split = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decoded(value.trim());
        Some((name.trim().to_owned(), value))
    };
    text.split(',').filter_map(split).collect::<Vec<_>>().into_iter()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, behind) = match (first, decoded) {
            (b'%', Some(byte)) => (byte, after.get(2..).unwrap_or_default()),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = behind;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
