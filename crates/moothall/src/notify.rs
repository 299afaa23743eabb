//! Notifications when a run ends or needs attention: on the desktop, or by a signed webhook.
//!
//! A notification contains the run id and its state, and nothing about the content of the run. A
//! failed notification is only a warning and never changes the result of a run.

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
use serde_json::json;

use crate::config::{ConfigFileSource, ConfigOrigin, LoadedConfig, NotifySection};
use crate::error::CliExit;
use crate::run_store;
use crate::terminal::{self, YELLOW};

/// Timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before each attempt.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// Prefix of base64 secrets in Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

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
    fn new(run_id: &RunId, notification: RunNotification, at_ms: u64) -> Self {
        let at = humantime::format_rfc3339_seconds(
            std::time::UNIX_EPOCH + Duration::from_secs(at_ms / 1000),
        );
        let body = json!({
            "type": notification.kind(),
            "run_id": run_id,
            "state": notification.state(),
            "at": at.to_string(),
        });
        Self {
            id: format!("{run_id}-{}-{at_ms}", notification.kind()),
            timestamp: (at_ms / 1000).to_string(),
            body: body.to_string(),
        }
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
    let Some(notification) = notification.filter(|_| section.desktop || section.webhook.is_some())
    else {
        return;
    };
    if is_untrusted(loaded) {
        return warn(
            "ignored the [notify] settings of the untrusted moothall.toml in the working directory",
        );
    }
    if section.desktop
        && let Err(why) = show_on_desktop(run_id, notification).await
    {
        warn(&format!("no desktop notification: {why}"));
    }
    if let Some(url) = &section.webhook
        && let Err(why) = post(loaded, section, url, run_id, notification).await
    {
        // The URL may contain a secret, so it is not printed.
        warn(&format!("`notify.webhook` failed: {why}"));
    }
}

fn warn(message: &str) {
    terminal::note(&format!("{YELLOW}warning: {}{YELLOW:#}\n", sanitize_line(message)));
}

/// A `moothall.toml` in the working directory is untrusted: its author would learn about the user's
/// runs.
fn is_untrusted(loaded: &LoadedConfig) -> bool {
    let from_folder =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    let keys = ["notify.desktop", "notify.webhook", "notify.webhook_secret_env"];
    let is_from_file = |key: &&str| {
        matches!(
            loaded.resolved.origin(key),
            ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. }
        )
    };
    from_folder && keys.iter().any(is_from_file)
}

async fn show_on_desktop(run_id: &RunId, notification: RunNotification) -> Result<(), String> {
    let message = format!("run {} {}", run_store::short_id(run_id), notification.description());
    let mut command = tokio::process::Command::new("notify-send");
    command
        .args(["--app-name=moothall", "moothall", &message])
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
    url: &str,
    run_id: &RunId,
    notification: RunNotification,
) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let message = WebhookMessage::new(run_id, notification, now_ms());
    let signature = match &section.webhook_secret_env {
        Some(name) => {
            let secret = loaded.environment.get(name).or_else(|| loaded.dotenv.get(name));
            let secret = secret.map(str::trim).filter(|secret| !secret.is_empty());
            // Never send unsigned if a secret is configured.
            let secret = secret.ok_or_else(|| format!("`{name}` is not set"))?;
            Some(message.signature(secret)?)
        }
        None => None,
    };
    let client = client(&url).map_err(|error| error.without_url().to_string())?;
    let mut last = String::new();
    for delay in RETRY_DELAYS {
        tokio::time::sleep(delay).await;
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
    Err(format!("{last} ({} attempts)", RETRY_DELAYS.len()))
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
