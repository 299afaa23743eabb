//! The `[notify]` section: receivers of notices about runs and drafts.
//!
//! Secrets (URLs of chats, signing secrets, passwords) are named by the variable that holds them and
//! never written here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use moothall_models::connection::is_loopback;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate::{is_name, is_variable};

/// Names of the receivers that `[notify]` itself configures.
const BUILT_IN_NAMES: [&str; 2] = ["desktop", "webhook"];

/// The `[notify]` section: notices when a run is finished, failed, stopped by its budget or needs
/// review, and when a draft needs review. A notice names the run or the draft and never contains the
/// content of a run or a file. A `moothall.toml` in the working directory is untrusted and cannot
/// set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySection {
    /// Show desktop notifications with `notify-send`.
    pub desktop: bool,
    /// URL that receives a POST request, such as `"https://example.com/hooks/moothall"`. HTTP
    /// without TLS is allowed only for this machine.
    pub webhook: Option<String>,
    /// Environment variable with the URL, instead of `webhook`, such as `"SLACK_WEBHOOK_URL"`. The
    /// URL of a Slack, Teams or Discord channel is a secret: it allows posting to the channel.
    pub webhook_env: Option<String>,
    /// Body of the request: `json` for your own receiver, or a message for `slack`, `teams` or
    /// `discord`.
    pub webhook_format: WebhookFormat,
    /// Environment variable with the secret that signs webhook requests (Standard Webhooks), such
    /// as `"MOOTHALL_HOOK"`. Never the secret itself.
    pub webhook_secret_env: Option<String>,
    /// Events for `desktop` and `webhook`: `finished`, `failed`, `paused` and `question` for runs,
    /// `needs-review` and `decided` for drafts. If empty, all events of runs.
    #[schemars(extend("x-type" = "list"))]
    pub events: Vec<NoticeEvent>,
    /// URL at which reviewers reach `moothall serve`, such as `"https://moothall.example.com"`.
    /// Notices about drafts link to it.
    pub server_url: Option<String>,
    /// How long a review link works.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String", extend("x-type" = "duration"))]
    pub link_lifetime: Duration,
    /// More receivers by name, such as `[notify.target.ops]`. Names consist of lower-case letters,
    /// digits, `-` and `_`.
    pub target: BTreeMap<String, NotifyTarget>,
}

impl Default for NotifySection {
    fn default() -> Self {
        Self {
            desktop: false,
            webhook: None,
            webhook_env: None,
            webhook_format: WebhookFormat::Json,
            webhook_secret_env: None,
            events: Vec::new(),
            server_url: None,
            link_lifetime: Duration::from_secs(24 * 60 * 60),
            target: BTreeMap::new(),
        }
    }
}

/// One receiver of notices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyTarget {
    /// Kind of receiver: `json` for your own webhook, `slack`, `teams`, `discord`, `email` or
    /// `desktop`.
    pub kind: TargetKind,
    /// Events to send: `finished`, `failed`, `paused` and `question` for runs, `needs-review` and
    /// `decided` for drafts. If empty, all of them.
    #[schemars(extend("x-type" = "list"))]
    pub events: Vec<NoticeEvent>,
    /// URL of the webhook, or of the mail server: `"smtps://mail.example.com"` (TLS, port 465) or
    /// `"smtp://mail.example.com"` (STARTTLS, port 587). A connection without TLS is never used for
    /// mail.
    pub url: Option<String>,
    /// Environment variable with the URL, instead of `url`. The URL of a chat is a secret.
    pub url_env: Option<String>,
    /// Environment variable with the secret that signs webhook requests (Standard Webhooks).
    pub secret_env: Option<String>,
    /// Link to the review page without a token, so that the reviewer must sign in. By default, the
    /// holder of a link can decide once about its draft.
    pub sign_in_to_review: bool,
    /// Sender address of mail.
    pub from: Option<String>,
    /// Recipient addresses of mail.
    #[schemars(extend("x-type" = "list"))]
    pub to: Vec<String>,
    /// Environment variable with the user name at the mail server. If not set, the sender address.
    pub user_env: Option<String>,
    /// Environment variable with the password. If not set, the password that `moothall key set
    /// notify.NAME` stored; without one, the mail server is used without signing in.
    pub password_env: Option<String>,
    /// PEM file with the only certificate authority to trust for the mail server. If not set, those
    /// of the system.
    #[schemars(extend("x-type" = "path"))]
    pub ca_file: Option<PathBuf>,
}

/// The body of a webhook request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookFormat {
    #[default]
    Json,
    Slack,
    Teams,
    Discord,
}

/// The kind of a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    #[default]
    Json,
    Slack,
    Teams,
    Discord,
    Email,
    Desktop,
}

impl TargetKind {
    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::Discord => "discord",
            Self::Email => "email",
            Self::Desktop => "desktop",
        }
    }
}

impl From<WebhookFormat> for TargetKind {
    fn from(format: WebhookFormat) -> Self {
        match format {
            WebhookFormat::Json => Self::Json,
            WebhookFormat::Slack => Self::Slack,
            WebhookFormat::Teams => Self::Teams,
            WebhookFormat::Discord => Self::Discord,
        }
    }
}

/// Events that a receiver gets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeEvent {
    /// A run finished
    Finished,
    /// A run failed
    Failed,
    /// A run is paused: budget, key or outage
    Paused,
    /// A run needs an answer or a decision
    Question,
    /// A draft needs review
    NeedsReview,
    /// A person decided about a draft
    Decided,
}

impl NoticeEvent {
    pub const OF_RUNS: [Self; 4] = [Self::Finished, Self::Failed, Self::Paused, Self::Question];
    pub const ALL: [Self; 6] = [
        Self::Finished,
        Self::Failed,
        Self::Paused,
        Self::Question,
        Self::NeedsReview,
        Self::Decided,
    ];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Paused => "paused",
            Self::Question => "question",
            Self::NeedsReview => "needs-review",
            Self::Decided => "decided",
        }
    }
}

const NOT_A_VARIABLE: &str = "is not the name of an environment variable";
const VARIABLE_HINT: &str =
    "use the name of a variable, such as \"HOOK_SECRET\", never the secret itself";
const WEBHOOK_HINT: &str = "use a URL like \"https://example.com/hooks/moothall\"";
const MAIL_HINT: &str = "use a URL like \"smtps://mail.example.com\" or \"smtp://host:587\"";

/// Reports problems beyond types.
pub(crate) fn check(notify: &NotifySection, report: &mut dyn FnMut(&[&str], &str, String)) {
    if let Some(Err(fault)) = notify.webhook.as_deref().map(check_webhook) {
        report(&["notify", "webhook"], fault, WEBHOOK_HINT.to_owned());
    }
    for (key, variable) in
        [("webhook_secret_env", &notify.webhook_secret_env), ("webhook_env", &notify.webhook_env)]
    {
        if variable.as_deref().is_some_and(|variable| !is_variable(variable)) {
            report(&["notify", key], NOT_A_VARIABLE, VARIABLE_HINT.to_owned());
        }
    }
    if notify.webhook.is_some() && notify.webhook_env.is_some() {
        let hint = "remove one of them".to_owned();
        report(&["notify", "webhook_env"], "cannot be combined with `notify.webhook`", hint);
    }
    if let Some(Err(fault)) = notify.server_url.as_deref().map(check_server_url) {
        let hint = "use a URL like \"https://moothall.example.com\"".to_owned();
        report(&["notify", "server_url"], fault, hint);
    }
    if notify.link_lifetime.is_zero() {
        let hint = "use a duration such as \"24h\"".to_owned();
        report(&["notify", "link_lifetime"], "must not be zero", hint);
    }
    for (name, target) in &notify.target {
        check_target(name, target, report);
    }
}

fn check_target(name: &str, target: &NotifyTarget, report: &mut dyn FnMut(&[&str], &str, String)) {
    if !is_name(name) || BUILT_IN_NAMES.contains(&name) {
        let hint = "use lower-case letters, digits, `-` and `_`; `desktop` and `webhook` are taken";
        report(&["notify", "target", name], "is not a valid target name", hint.to_owned());
        return;
    }
    let mut fault = |key: &str, fault: &str, hint: &str| {
        report(&["notify", "target", name, key], fault, hint.to_owned());
    };
    for (key, variable) in [
        ("url_env", &target.url_env),
        ("secret_env", &target.secret_env),
        ("user_env", &target.user_env),
        ("password_env", &target.password_env),
    ] {
        if variable.as_deref().is_some_and(|variable| !is_variable(variable)) {
            fault(key, NOT_A_VARIABLE, VARIABLE_HINT);
        }
    }
    let is_mail = target.kind == TargetKind::Email;
    let (check, hint) = match is_mail {
        true => (check_mail_url as fn(&str) -> Result<(), &'static str>, MAIL_HINT),
        false => (check_webhook as fn(&str) -> Result<(), &'static str>, WEBHOOK_HINT),
    };
    match (&target.url, &target.url_env) {
        (Some(_), Some(_)) => fault("url_env", "cannot be combined with `url`", "remove one"),
        (None, None) if target.kind != TargetKind::Desktop => {
            fault("url", "is missing", hint);
        }
        (Some(url), None) => {
            if let Err(why) = check(url) {
                fault("url", why, hint);
            }
        }
        _ => {}
    }
    if is_mail {
        if target.from.is_none() {
            fault("from", "is missing", "set the sender, such as \"moothall@example.com\"");
        }
        if target.to.is_empty() {
            fault("to", "is missing", "set the recipients, such as [\"ada@example.com\"]");
        }
    }
}

/// Notices cross the network, so unencrypted HTTP is allowed only on loopback.
pub(crate) fn check_webhook(url: &str) -> Result<(), &'static str> {
    let url = reqwest::Url::parse(url).map_err(|_| "is not a valid URL")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(&url) => Ok(()),
        "http" => Err("must use https, except on this machine"),
        _ => Err("must start with `https://` or `http://`"),
    }
}

/// A link must lead to the server and nowhere else, so there is only an origin.
fn check_server_url(url: &str) -> Result<(), &'static str> {
    check_webhook(url)?;
    let url = reqwest::Url::parse(url).map_err(|_| "is not a valid URL")?;
    match url.path() == "/" && url.query().is_none() && url.fragment().is_none() {
        true => Ok(()),
        false => Err("must not contain a path"),
    }
}

pub(crate) fn check_mail_url(url: &str) -> Result<(), &'static str> {
    let url = reqwest::Url::parse(url).map_err(|_| "is not a valid URL")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    match url.scheme() {
        "smtp" | "smtps"
            if url.host_str().is_some_and(|host| !host.is_empty())
                && matches!(url.path(), "" | "/")
                && url.query().is_none() =>
        {
            Ok(())
        }
        "smtp" | "smtps" => Err("must contain only a host and a port"),
        _ => Err("must start with `smtps://` or `smtp://`"),
    }
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
