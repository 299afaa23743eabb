//! Notices when a run ends or needs attention, and when a draft needs review: on the desktop, by
//! mail, or by a signed webhook, also as a message in Slack, Microsoft Teams or Discord.
//!
//! A notice names the run or the draft, and contains nothing about the content of a run or a file. A
//! notice that fails is only a warning and never changes a result.
//!
//! ```text
//! notice.rs          what a notice says
//! body.rs            its form for each kind of receiver
//! targets.rs         the configured receivers
//! draft_notices.rs   notices about drafts, from the draft store
//! outbox.rs          messages on their way, on disk
//! delivery.rs        first attempts and retries; webhook.rs and email.rs send one message
//! ```

mod body;
mod delivery;
mod draft_notices;
mod email;
mod notice;
mod outbox;
mod targets;
mod webhook;

use std::time::Duration;

use moothall_core::RunId;
use moothall_core::text::sanitize_line;
use moothall_store::now_ms;

pub(crate) use self::delivery::{ResendResult, finish_deliveries, resend_until};
pub(crate) use self::draft_notices::{draft_listener, review_links};
pub(crate) use self::notice::RunNotification;

use self::body::body;
use self::delivery::{deliver_first, lock_outbox, resend, resend_due, warn_about};
use self::notice::{Notice, time_text};
use self::outbox::{KeptMessage, NotificationOutbox};
use self::targets::{NoticeTarget, chosen_targets, targets, untrusted};
use crate::config::{LoadedConfig, TargetKind};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, YELLOW};

/// Other processes leave a message alone while this one makes its first attempts.
const FIRST_ATTEMPTS_MS: u64 = 60_000;

/// How long `notify resend` waits for another process that sends messages.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Reports the result on the terminal, then sends notices.
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
    // Boxed because the future is large.
    Box::pin(send(loaded, run_id, notification)).await;
    reported
}

/// Sends the configured notices, and returns when they are delivered or have failed.
pub(crate) async fn send(
    loaded: &LoadedConfig,
    run_id: &RunId,
    notification: Option<RunNotification>,
) {
    let Some(notification) = notification else { return };
    let notice = Notice::of_run(run_id, notification, now_ms());
    let wants = |target: &NoticeTarget| notice.event().is_some_and(|one| target.wants(one));
    let to: Vec<NoticeTarget> = targets(loaded).into_iter().filter(wants).collect();
    if to.is_empty() {
        return;
    }
    if let Some(why) = untrusted(loaded) {
        return warn(why);
    }
    let outbox = NotificationOutbox::of(&loaded.locations.folders);
    let mut messages = Vec::new();
    for target in to {
        let message = message(&target, &notice);
        // On disk first, so that a process that is killed leaves it for the next one.
        if let Err(error) = outbox.write(&message) {
            warn(&format!("`{}`: the notice cannot be stored: {error}", target.setting()));
        }
        messages.push((target, message));
    }
    let mut is_delivered = false;
    for (target, mut message, sent) in deliver_first(loaded, &outbox, messages).await {
        is_delivered |= sent.is_ok();
        let stored = match sent {
            Ok(()) => outbox.remove(&message),
            Err(error) => {
                warn_about(&target, &error);
                message.postpone(now_ms());
                match target.settings.kind {
                    TargetKind::Desktop => outbox.remove(&message),
                    _ => outbox.write(&message),
                }
            }
        };
        if let Err(error) = stored {
            warn(&format!("`{}`: the outbox cannot be written: {error}", target.setting()));
        }
    }
    if is_delivered {
        // A receiver that is back gets what was kept for it.
        drop(resend_due(loaded).await);
    }
}

fn message(target: &NoticeTarget, notice: &Notice) -> KeptMessage {
    let now_ms = now_ms();
    let body = body(target.settings.kind, notice, None);
    KeptMessage::new(&target.name, &notice.id, body, now_ms, now_ms + FIRST_ATTEMPTS_MS)
}

/// Sends all kept messages of one receiver, or of all, now.
pub(crate) async fn resend_all(
    loaded: &LoadedConfig,
    only: Option<&str>,
) -> Result<ResendResult, CliError> {
    let to = chosen_targets(loaded, only)?;
    let outbox = NotificationOutbox::of(&loaded.locations.folders);
    let unusable = |error: std::io::Error| {
        CliError::failed("cannot use the outbox of notices").with_source(error)
    };
    let Some(_lock) = lock_outbox(&outbox, LOCK_WAIT).await.map_err(unusable)? else {
        return Err(CliError::failed("another process is sending notices")
            .with_hint("try again in a moment"));
    };
    resend(loaded, &outbox, &to, u64::MAX).await.map_err(unusable)
}

/// The error for a receiver that did not accept a message.
pub(crate) fn resend_failure(result: &ResendResult) -> Option<CliError> {
    let (target, error) = result.failures.first()?;
    let failed = CliError::failed(format!("`{}` failed: {}", target.setting(), error.why));
    Some(match &error.hint {
        Some(hint) => failed.with_hint(hint.clone()),
        None => failed.with_hint("test the settings with `moothall notify test`"),
    })
}

/// Sends a test message to one receiver, or to all, and says what it was sent to.
pub(crate) async fn send_test(
    loaded: &LoadedConfig,
    only: Option<&str>,
) -> Result<Vec<String>, CliError> {
    let to = chosen_targets(loaded, only)?;
    if to.is_empty() {
        return Err(CliError::usage("no notifications are configured").with_hint(
            "set `notify.webhook`, `notify.webhook_env` or `notify.desktop`, or add `[notify.target.NAME]`; see \"Get notified\" in the documentation",
        ));
    }
    let outbox = NotificationOutbox::of(&loaded.locations.folders);
    let notice = Notice::test(now_ms());
    let messages = to.into_iter().map(|target| (target.clone(), message(&target, &notice)));
    let done = deliver_first(loaded, &outbox, messages.collect()).await;
    let failed = done.iter().find_map(|(target, _, sent)| Some((target, sent.as_ref().err()?)));
    if let Some((target, error)) = failed {
        let failed = match target.settings.kind {
            TargetKind::Desktop => format!("no desktop notification: {}", error.why),
            _ => format!("`{}` failed: {}", target.setting(), error.why),
        };
        let hint = error.hint.clone().unwrap_or_else(|| match target.name.as_str() {
            targets::WEBHOOK => "check the URL and `notify.webhook_format`".to_owned(),
            _ => format!("check the settings in `{}`", target.setting()),
        });
        return Err(CliError::failed(failed).with_hint(hint));
    }
    Ok(done.iter().map(|(target, ..)| target.description()).collect())
}

/// A receiver and how its last attempt ended. Contains no URL, address or secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetStatus {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) events: Vec<&'static str>,
    /// Messages that wait for another attempt.
    pub(crate) waiting: usize,
    pub(crate) last_at: Option<String>,
    pub(crate) last_error: Option<String>,
}

/// The receivers in use.
pub(crate) fn status(loaded: &LoadedConfig) -> Vec<TargetStatus> {
    if untrusted(loaded).is_some() {
        return Vec::new();
    }
    let outbox = NotificationOutbox::of(&loaded.locations.folders);
    let kept = outbox.messages(now_ms()).unwrap_or_default();
    let all = targets(loaded).into_iter().map(|target| {
        let result = outbox.result(&target.name);
        TargetStatus {
            kind: target.settings.kind.as_str(),
            events: target.events().iter().map(|event| event.as_str()).collect(),
            waiting: kept.iter().filter(|message| message.target == target.name).count(),
            last_at: result.as_ref().map(|result| time_text(result.at_ms)),
            last_error: result.and_then(|result| result.error),
            name: target.name,
        }
    });
    all.collect()
}

fn warn(message: &str) {
    terminal::note(&format!("{YELLOW}warning: {}{YELLOW:#}\n", sanitize_line(message)));
}
