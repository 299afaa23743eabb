//! Telling somebody that a run has ended or stands still: on the desktop, or by a signed request.
//!
//! A notice names the run and says where it stands, and nothing of what it is about. One that cannot
//! be given is a line of warning; it never changes what came of a run.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moothall_core::causes;
use moothall_core::text::shown_line;
use moothall_core::{Conclusion, Outcome, RunId, Verdict};
use moothall_engine::{Ended, Pause};
use moothall_models::connection::is_loopback;
use moothall_store::{RunState, now_ms};
use reqwest::{Client, Url};
use ring::hmac;
use serde_json::json;

use crate::config::{FoundBy, Loaded, NotifySection, Origin};
use crate::error::Exit;
use crate::local;
use crate::terminal::{self, YELLOW};

/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before each try.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// What Standard Webhooks put before a secret in base64.
const SECRET_MARK: &str = "whsec_";

/// What a run has come to that is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Finished,
    Failed,
    /// Paused: the next call does not fit the budget.
    Budget,
    /// Paused: the provider refuses the key, or the account behind it.
    Refused,
    /// A person must decide.
    Waiting,
}

impl News {
    /// What is worth telling about where a run was left. Whoever pauses or cancels a run knows that
    /// it stands still.
    pub(crate) fn of(ended: &Ended) -> Option<Self> {
        match ended {
            Ended::Done(outcome) => Some(Self::of_outcome(outcome)),
            Ended::Paused(Pause::Budget(_)) => Some(Self::Budget),
            Ended::Paused(Pause::Failure(..)) => Some(Self::Refused),
            Ended::Paused(Pause::Question(_)) => Some(Self::Waiting),
            Ended::Paused(Pause::Person) | Ended::Cancelled => None,
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
            (_, Verdict::NeedsPerson) => Self::Waiting,
            (_, Verdict::Pass | Verdict::Fail) => Self::Finished,
        }
    }

    /// The type of the event, as a receiver sees it.
    fn kind(self) -> &'static str {
        match self {
            Self::Finished => "run.finished",
            Self::Failed => "run.failed",
            Self::Budget => "run.budget",
            Self::Refused => "run.refused",
            Self::Waiting => "run.waiting",
        }
    }

    /// Where the run stands. One that waits for a person's word on a move has come to its end.
    fn state(self) -> RunState {
        match self {
            Self::Finished | Self::Waiting => RunState::Finished,
            Self::Failed => RunState::Failed,
            Self::Budget | Self::Refused => RunState::Paused,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Finished => "is finished",
            Self::Failed => "has failed",
            Self::Budget => "is paused: its budget is used up",
            Self::Refused => "is paused: the provider refuses the key or its account",
            Self::Waiting => "waits for a person",
        }
    }
}

/// What a receiver is told, and under which name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Message {
    /// The same for every try, so that a receiver can tell repetitions.
    id: String,
    /// Seconds since 1970.
    timestamp: String,
    body: String,
}

impl Message {
    fn new(run_id: &RunId, news: News, at_ms: u64) -> Self {
        let at = humantime::format_rfc3339_seconds(
            std::time::UNIX_EPOCH + Duration::from_secs(at_ms / 1000),
        );
        let body = json!({
            "type": news.kind(),
            "run_id": run_id,
            "state": news.state(),
            "at": at.to_string(),
        });
        Self {
            id: format!("{run_id}-{}-{at_ms}", news.kind()),
            timestamp: (at_ms / 1000).to_string(),
            body: body.to_string(),
        }
    }

    /// The signature of Standard Webhooks: over id, timestamp and body.
    fn signature(&self, secret: &str) -> Result<String, &'static str> {
        let key = match secret.strip_prefix(SECRET_MARK) {
            Some(coded) => STANDARD.decode(coded).map_err(|_| "its secret is not base64")?,
            None => secret.as_bytes().to_vec(),
        };
        let signed = format!("{}.{}.{}", self.id, self.timestamp, self.body);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
        Ok(format!("v1,{}", STANDARD.encode(tag)))
    }
}

/// Tells the person who is here what came of a run, and then those who are not.
pub(crate) async fn conclude<T>(
    loaded: &Loaded,
    run_id: &RunId,
    news: Option<News>,
    left: anyhow::Result<T>,
    finish: impl AsyncFnOnce(T) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let told = match left {
        Ok(left) => finish(left).await,
        Err(error) => Err(error),
    };
    tell(loaded, run_id, news).await;
    told
}

/// Tells whoever wants to know. Returns when they know, or when nobody can be told.
pub(crate) async fn tell(loaded: &Loaded, run_id: &RunId, news: Option<News>) {
    let section = &loaded.resolved.config.notify;
    let Some(news) = news.filter(|_| section.desktop || section.webhook.is_some()) else { return };
    if is_from_a_stranger(loaded) {
        return warn("the moothall.toml in this folder may not say who is told about runs");
    }
    if section.desktop
        && let Err(why) = on_desktop(run_id, news).await
    {
        warn(&format!("no notice on the desktop: {why}"));
    }
    if let Some(url) = &section.webhook
        && let Err(why) = post(loaded, section, url, run_id, news).await
    {
        // The address may hold a secret, so it is not repeated.
        warn(&format!("`notify.webhook` was not told: {why}"));
    }
}

fn warn(words: &str) {
    terminal::note(&format!("{YELLOW}warning: {}{YELLOW:#}\n", shown_line(words)));
}

/// A moothall.toml that merely lies in the working folder may come from a stranger, who would be told
/// what somebody else works on.
fn is_from_a_stranger(loaded: &Loaded) -> bool {
    let from_folder = loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
    let keys = ["notify.desktop", "notify.webhook", "notify.webhook_secret_env"];
    let theirs = |key: &&str| {
        matches!(loaded.resolved.origin(key), Origin::File { .. } | Origin::DotEnv { .. })
    };
    from_folder && keys.iter().any(theirs)
}

async fn on_desktop(run_id: &RunId, news: News) -> Result<(), String> {
    let words = format!("run {} {}", local::short(run_id), news.words());
    let mut command = tokio::process::Command::new("notify-send");
    command
        .args(["--app-name=moothall", "moothall", &words])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(TIMEOUT, command.status()).await;
    match ended.map_err(|_| "notify-send does not come to an end".to_owned())? {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("notify-send finds no desktop".to_owned()),
        Err(error) => Err(format!("notify-send cannot be started: {error}")),
    }
}

async fn post(
    loaded: &Loaded,
    section: &NotifySection,
    url: &str,
    run_id: &RunId,
    news: News,
) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let message = Message::new(run_id, news, now_ms());
    let signature = match &section.webhook_secret_env {
        Some(name) => {
            let secret = loaded.environment.get(name).or_else(|| loaded.dotenv.get(name));
            let secret = secret.map(str::trim).filter(|secret| !secret.is_empty());
            // What should be signed is not sent without.
            let secret = secret.ok_or_else(|| format!("`{name}` is not set"))?;
            Some(message.signature(secret)?)
        }
        None => None,
    };
    let client = client(&url).map_err(|error| error.without_url().to_string())?;
    let mut last = String::new();
    for pause in PAUSES {
        tokio::time::sleep(pause).await;
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
            Ok(answer) => last = format!("it answers {}", answer.status()),
            Err(error) if error.is_timeout() => {
                last = format!("no answer in {} seconds", TIMEOUT.as_secs());
            }
            Err(error) => last = root(&error.without_url()),
        }
    }
    Err(format!("{last} ({} tries)", PAUSES.len()))
}

/// The cause behind all causes, which is the one that helps: that nobody listens, say.
fn root(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn client(url: &Url) -> Result<Client, reqwest::Error> {
    // The first caller in the process decides; any provider will do, so a refusal is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .timeout(TIMEOUT)
        .user_agent(concat!("moothall/", env!("CARGO_PKG_VERSION")))
        // A redirect would lead to an address that nobody configured.
        .redirect(reqwest::redirect::Policy::none());
    // Servers on this machine are never reached through the system's proxy.
    if is_loopback(url) { builder.no_proxy() } else { builder }.build()
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
