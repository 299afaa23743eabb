//! Notifications when a run ends or needs attention: on the desktop, or by a signed webhook, also as
//! a message in Slack, Microsoft Teams or Discord.
//!
//! A notification contains the run id and its state, and nothing about the content of the run. A
//! failed notification is only a warning and never changes the result of a run.

mod outbox;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moothall_core::causes;
use moothall_core::model::FailureKind;
use moothall_core::text::sanitize_line;
use moothall_core::{Conclusion, Outcome, RunId, RunVerdict};
use moothall_engine::{RunExit, RunPause};
use moothall_models::build_http_client;
use moothall_models::connection::is_loopback;
use moothall_store::{RunState, now_ms};
use reqwest::{Client, Url};
use ring::hmac;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::outbox::NotificationOutbox;
use crate::config::{
    ConfigFileSource, ConfigOrigin, LoadedConfig, NotifySection, WebhookFormat, check_webhook,
};
use crate::error::{CliError, CliExit};
use crate::run_store;
use crate::terminal::{self, YELLOW};

/// Timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before each attempt.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// How often a server looks for kept messages that are due.
const RESEND_INTERVAL: Duration = Duration::from_secs(5);

/// Prefix of base64 secrets in Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

const UNTRUSTED: &str =
    "ignored the [notify] settings of the untrusted moothall.toml in the working directory";

/// Events that trigger a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunNotification {
    Finished,
    Failed,
    /// Paused: the next call would exceed the budget.
    Budget,
    /// Paused: the provider rejected the API key or its account.
    Refused,
    /// Paused: the provider does not answer.
    Outage,
    /// Paused: a person must answer a question.
    Question,
    /// Finished: a person must decide about the result.
    Waiting,
}

impl RunNotification {
    /// The notification for the end of a run. None if a person paused or cancelled it, because they
    /// know.
    pub(crate) fn of(ended: &RunExit) -> Option<Self> {
        match ended {
            RunExit::Done(outcome) => Some(Self::of_outcome(outcome)),
            RunExit::Paused(RunPause::Budget(_)) => Some(Self::Budget),
            RunExit::Paused(RunPause::Failure(_, failure)) if failure.kind == FailureKind::Auth => {
                Some(Self::Refused)
            }
            RunExit::Paused(RunPause::Failure(..)) => Some(Self::Outage),
            RunExit::Paused(RunPause::Question(_)) => Some(Self::Question),
            RunExit::Paused(RunPause::Person) | RunExit::Cancelled => None,
        }
    }

    fn of_outcome(outcome: &Outcome) -> Self {
        match (&outcome.conclusion, outcome.verdict) {
            (
                Conclusion::Failed { .. }
                | Conclusion::NotExecuted { .. }
                | Conclusion::NotDebated { .. }
                | Conclusion::NotGathered { .. },
                _,
            ) => Self::Failed,
            (_, RunVerdict::NeedsPerson) => Self::Waiting,
            (_, RunVerdict::Pass | RunVerdict::Fail) => Self::Finished,
        }
    }

    /// The event type sent to webhooks.
    fn kind(self) -> &'static str {
        match self {
            Self::Finished => "run.finished",
            Self::Failed => "run.failed",
            Self::Budget => "run.budget",
            Self::Refused => "run.refused",
            Self::Outage => "run.outage",
            Self::Question | Self::Waiting => "run.waiting",
        }
    }

    /// The state of the run. A run that needs a decision on a move is already finished.
    fn state(self) -> RunState {
        match self {
            Self::Finished | Self::Waiting => RunState::Finished,
            Self::Failed => RunState::Failed,
            Self::Budget | Self::Refused | Self::Outage | Self::Question => RunState::Paused,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Finished => "is finished",
            Self::Failed => "has failed",
            Self::Budget => "is paused: its budget is exhausted",
            Self::Refused => "is paused: the provider rejected the API key or its account",
            Self::Outage => "is paused: the provider does not answer",
            Self::Question => "is paused and needs review",
            Self::Waiting => "needs review",
        }
    }
}

/// A webhook message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebhookMessage {
    /// The same for every attempt, so that receivers can detect duplicates.
    id: String,
    /// Seconds since 1970.
    timestamp: String,
    body: String,
}

impl WebhookMessage {
    fn new(
        format: WebhookFormat,
        run_id: &RunId,
        notification: RunNotification,
        at_ms: u64,
    ) -> Self {
        let kind = notification.kind();
        let body = match format {
            WebhookFormat::Json => json!({
                "type": kind,
                "run_id": run_id,
                "state": notification.state(),
                "at": time_text(at_ms),
            }),
            chat => {
                let id = run_store::short_id(run_id);
                let sentence = format!("run {id} {}", notification.description());
                chat_body(chat, &sentence, Some(&format!("moothall show {id}")))
            }
        };
        Self::with_body(format!("{run_id}-{kind}-{at_ms}"), at_ms, &body)
    }

    /// A message that only shows that the receiver works.
    fn test(format: WebhookFormat, at_ms: u64) -> Self {
        let body = match format {
            WebhookFormat::Json => json!({ "type": "test", "at": time_text(at_ms) }),
            chat => chat_body(chat, "this is a test message", None),
        };
        Self::with_body(format!("test-{at_ms}"), at_ms, &body)
    }

    fn with_body(id: String, at_ms: u64, body: &Value) -> Self {
        Self { id, timestamp: (at_ms / 1000).to_string(), body: body.to_string() }
    }

    /// The Standard Webhooks signature over id, timestamp and body.
    fn signature(&self, secret: &str) -> Result<String, &'static str> {
        let key = match secret.strip_prefix(SECRET_PREFIX) {
            Some(coded) => STANDARD.decode(coded).map_err(|_| "the secret is not valid base64")?,
            None => secret.as_bytes().to_vec(),
        };
        let signed = format!("{}.{}.{}", self.id, self.timestamp, self.body);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
        Ok(format!("v1,{}", STANDARD.encode(tag)))
    }
}

fn time_text(at_ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + Duration::from_secs(at_ms / 1000);
    humantime::format_rfc3339_seconds(at).to_string()
}

/// A message for people. Its text is fixed except for the id, so it needs no escaping.
fn chat_body(format: WebhookFormat, sentence: &str, command: Option<&str>) -> Value {
    let text = format!("moothall: {sentence}");
    let code = command.map(|command| format!("`{command}`"));
    let with_code = match &code {
        Some(code) => format!("{text}\n{code}"),
        None => text.clone(),
    };
    match format {
        WebhookFormat::Slack => json!({
            "text": text,
            "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": with_code } }],
        }),
        WebhookFormat::Teams => {
            let lines = [Some(text), command.map(str::to_owned)].into_iter().flatten();
            let lines: Vec<Value> = lines
                .map(|line| json!({ "type": "TextBlock", "text": line, "wrap": true }))
                .collect();
            json!({
                "type": "message",
                "attachments": [{
                    "contentType": "application/vnd.microsoft.card.adaptive",
                    "content": { "type": "AdaptiveCard", "version": "1.4", "body": lines },
                }],
            })
        }
        WebhookFormat::Discord => {
            json!({ "content": with_code, "allowed_mentions": { "parse": [] } })
        }
        WebhookFormat::Json => json!({ "text": text }),
    }
}

/// Reports the result on the terminal, then sends notifications.
pub(crate) async fn report_and_notify<T>(
    loaded: &LoadedConfig,
    run_id: &RunId,
    notification: Option<RunNotification>,
    result: anyhow::Result<T>,
    finish: impl AsyncFnOnce(T) -> anyhow::Result<CliExit>,
) -> anyhow::Result<CliExit> {
    let reported = match result {
        Ok(result) => finish(result).await,
        Err(error) => Err(error),
    };
    send(loaded, run_id, notification).await;
    reported
}

/// Sends the configured notifications, and returns when they are delivered or have failed.
pub(crate) async fn send(
    loaded: &LoadedConfig,
    run_id: &RunId,
    notification: Option<RunNotification>,
) {
    let section = &loaded.resolved.config.notify;
    let Some(notification) = notification.filter(|_| section.desktop || has_webhook(section))
    else {
        return;
    };
    if is_untrusted(loaded) {
        return warn(UNTRUSTED);
    }
    if section.desktop
        && let Err(why) = show_on_desktop(&format!(
            "run {} {}",
            run_store::short_id(run_id),
            notification.description()
        ))
        .await
    {
        warn(&format!("no desktop notification: {why}"));
    }
    if has_webhook(section) {
        let outbox = NotificationOutbox::of(&loaded.locations.folders);
        let message = WebhookMessage::new(section.webhook_format, run_id, notification, now_ms());
        // The URL may contain a secret, so it is not printed.
        match post(loaded, section, &message, &RETRY_DELAYS).await {
            Ok(()) => drop(resend(loaded, &outbox, now_ms()).await),
            Err(WebhookError::Setting(why)) => warn(&format!("`notify.webhook` failed: {why}")),
            Err(WebhookError::Receiver(why)) => match outbox.keep(&message, now_ms()) {
                Ok(()) => warn(&format!(
                    "`notify.webhook` failed: {why}; `moothall serve` and `moothall notify resend` try again"
                )),
                Err(error) => warn(&format!("`notify.webhook` failed: {why}; {error}")),
            },
        }
    }
}

/// Why a webhook message was not delivered.
#[derive(Debug)]
enum WebhookError {
    /// Trying again does not help.
    Setting(String),
    /// The receiver is unavailable or refused the message.
    Receiver(String),
}

impl std::fmt::Display for WebhookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Setting(why) | Self::Receiver(why)) = self;
        f.write_str(why)
    }
}

/// How many kept messages were delivered, and how many are left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ResendResult {
    pub(crate) sent: usize,
    pub(crate) left: usize,
}

/// Sends kept messages again, oldest first, until one fails.
async fn resend(
    loaded: &LoadedConfig,
    outbox: &NotificationOutbox,
    due_at_ms: u64,
) -> Result<ResendResult, String> {
    let section = &loaded.resolved.config.notify;
    let mut result = ResendResult::default();
    let mut failure = None;
    for mut kept in outbox.messages(now_ms()).map_err(|error| error.to_string())? {
        if failure.is_some() || kept.next_at_ms > due_at_ms {
            result.left += 1;
            continue;
        }
        let message = WebhookMessage {
            id: kept.id.clone(),
            // Receivers refuse old timestamps; the id shows that it is the same message.
            timestamp: (now_ms() / 1000).to_string(),
            body: kept.body.clone(),
        };
        match post(loaded, section, &message, &[Duration::ZERO]).await {
            Ok(()) => {
                outbox.remove(&kept).map_err(|error| error.to_string())?;
                result.sent += 1;
            }
            Err(why) => {
                kept.postpone(now_ms());
                outbox.write(&kept).map_err(|error| error.to_string())?;
                result.left += 1;
                failure = Some(why.to_string());
            }
        }
    }
    failure.map_or(Ok(result), Err)
}

/// Sends all kept messages now.
pub(crate) async fn resend_all(loaded: &LoadedConfig) -> Result<ResendResult, CliError> {
    if is_untrusted(loaded) {
        return Err(CliError::usage(UNTRUSTED).with_hint("pass the file with `--config`"));
    }
    let outbox = NotificationOutbox::of(&loaded.locations.folders);
    resend(loaded, &outbox, u64::MAX).await.map_err(|why| {
        CliError::failed(format!("`notify.webhook` failed: {why}"))
            .with_hint("test the settings with `moothall notify test`")
    })
}

/// Sends kept messages when they are due, until the server stops.
pub(crate) async fn resend_until(config: Option<PathBuf>, closing: CancellationToken) {
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(RESEND_INTERVAL) => {}
        }
        // Read again, so that a corrected setting needs no restart.
        let Ok(loaded) = crate::config::load(config.as_deref(), toml::Table::new()) else {
            continue;
        };
        if has_webhook(&loaded.resolved.config.notify) && !is_untrusted(&loaded) {
            let outbox = NotificationOutbox::of(&loaded.locations.folders);
            if let Err(why) = resend(&loaded, &outbox, now_ms()).await {
                tracing::warn!(target: "moothall::notify", why, "notification not delivered yet");
            }
        }
    }
}

fn has_webhook(section: &NotifySection) -> bool {
    section.webhook.is_some() || section.webhook_env.is_some()
}

/// Sends a test message to everything that is configured, and says what it was sent to.
pub(crate) async fn send_test(loaded: &LoadedConfig) -> Result<Vec<String>, CliError> {
    let section = &loaded.resolved.config.notify;
    if !section.desktop && !has_webhook(section) {
        return Err(CliError::usage("no notifications are configured").with_hint(
            "set `notify.webhook`, `notify.webhook_env` or `notify.desktop`; see \"Get notified\" in the documentation",
        ));
    }
    if is_untrusted(loaded) {
        return Err(CliError::usage(UNTRUSTED).with_hint("pass the file with `--config`"));
    }
    let mut sent = Vec::new();
    if section.desktop {
        show_on_desktop("this is a test message")
            .await
            .map_err(|why| CliError::failed(format!("no desktop notification: {why}")))?;
        sent.push("the desktop".to_owned());
    }
    if has_webhook(section) {
        let message = WebhookMessage::test(section.webhook_format, now_ms());
        post(loaded, section, &message, &RETRY_DELAYS).await.map_err(|why| {
            CliError::failed(format!("`notify.webhook` failed: {why}"))
                .with_hint("check the URL and `notify.webhook_format`")
        })?;
        sent.push(match section.webhook_format {
            WebhookFormat::Json => "the webhook".to_owned(),
            WebhookFormat::Slack => "Slack".to_owned(),
            WebhookFormat::Teams => "Teams".to_owned(),
            WebhookFormat::Discord => "Discord".to_owned(),
        });
    }
    Ok(sent)
}

fn warn(message: &str) {
    terminal::note(&format!("{YELLOW}warning: {}{YELLOW:#}\n", sanitize_line(message)));
}

/// A `moothall.toml` in the working directory is untrusted: its author would learn about the user's
/// runs.
fn is_untrusted(loaded: &LoadedConfig) -> bool {
    let from_folder =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    let keys = [
        "notify.desktop",
        "notify.webhook",
        "notify.webhook_env",
        "notify.webhook_format",
        "notify.webhook_secret_env",
    ];
    let is_from_file = |key: &&str| {
        matches!(
            loaded.resolved.origin(key),
            ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. }
        )
    };
    from_folder && keys.iter().any(is_from_file)
}

async fn show_on_desktop(message: &str) -> Result<(), String> {
    let mut command = tokio::process::Command::new("notify-send");
    command
        .args(["--app-name=moothall", "moothall", message])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(TIMEOUT, command.status()).await;
    match ended.map_err(|_| "notify-send timed out".to_owned())? {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("notify-send found no desktop".to_owned()),
        Err(error) => Err(format!("cannot start notify-send: {error}")),
    }
}

async fn post(
    loaded: &LoadedConfig,
    section: &NotifySection,
    message: &WebhookMessage,
    delays: &[Duration],
) -> Result<(), WebhookError> {
    let variable = |name: &String| {
        let value = loaded.environment.get(name).or_else(|| loaded.dotenv.get(name));
        let value = value.map(str::trim).filter(|value| !value.is_empty());
        value
            .map(str::to_owned)
            .ok_or_else(|| WebhookError::Setting(format!("`{name}` is not set")))
    };
    let url = match (&section.webhook, &section.webhook_env) {
        (Some(url), _) => url.clone(),
        (None, Some(name)) => {
            let url = variable(name)?;
            check_webhook(&url)
                .map_err(|fault| WebhookError::Setting(format!("`{name}` {fault}")))?;
            url
        }
        (None, None) => {
            return Err(WebhookError::Setting("`notify.webhook` is not set".to_owned()));
        }
    };
    let url = Url::parse(&url).map_err(|error| WebhookError::Setting(error.to_string()))?;
    // Never send unsigned if a secret is configured.
    let secret = section.webhook_secret_env.as_ref().map(variable).transpose()?;
    let signature = secret.map(|secret| message.signature(&secret)).transpose();
    let signature = signature.map_err(|why| WebhookError::Setting(why.to_owned()))?;
    let client =
        client(&url).map_err(|error| WebhookError::Setting(error.without_url().to_string()))?;
    let mut last = String::new();
    for delay in delays {
        tokio::time::sleep(*delay).await;
        let mut request = client
            .post(url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", &message.timestamp)
            .body(message.body.clone());
        if let Some(signature) = &signature {
            request = request.header("webhook-signature", signature);
        }
        match request.send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => last = format!("status {}", answer.status()),
            Err(error) if error.is_timeout() => {
                last = format!("no response within {} seconds", TIMEOUT.as_secs());
            }
            Err(error) => last = root(&error.without_url()),
        }
    }
    let tries = delays.len();
    let plural = if tries == 1 { "attempt" } else { "attempts" };
    Err(WebhookError::Receiver(format!("{last} ({tries} {plural})")))
}

/// The innermost cause, such as a refused connection, which is the most helpful one.
fn root(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn client(url: &Url) -> Result<Client, reqwest::Error> {
    build_http_client(|builder| {
        let builder = builder
            .timeout(TIMEOUT)
            .user_agent(concat!("moothall/", env!("CARGO_PKG_VERSION")))
            // A redirect would lead to a URL that the user did not configure.
            .redirect(reqwest::redirect::Policy::none());
        // Loopback servers are never reached through the system proxy.
        if is_loopback(url) { builder.no_proxy() } else { builder }
    })
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
