//! Delivers messages: first attempts, retries of kept ones, and the thread that sends notices of
//! this process in the background.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::text::sanitize_line;
use moothall_store::now_ms;
use tokio_util::sync::CancellationToken;

use super::outbox::{KeptMessage, NotificationOutbox, OutboxLock, TargetResult};
use super::targets::{NoticeTarget, targets, untrusted};
use super::{email, warn, webhook};
use crate::config::{LoadedConfig, TargetKind};

/// Timeout of one attempt to reach a webhook or the desktop.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before each of the first attempts.
pub(crate) const RETRY_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

/// How often a process looks for kept messages that are due.
const RESEND_INTERVAL: Duration = Duration::from_secs(5);

/// How long a process that sends messages waits for another one, and how often it looks.
const BACKGROUND_LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a command that ends waits for its notices.
const EXIT_WAIT: Duration = Duration::from_secs(20);

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryError {
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
    /// Whether the receiver may accept it later; otherwise a setting is wrong.
    pub(crate) retry: bool,
}

impl DeliveryError {
    pub(crate) fn setting(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, retry: false }
    }

    pub(crate) fn receiver(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, retry: true }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// A variable of the process or of `.env`.
pub(crate) fn variable(loaded: &LoadedConfig, name: &str) -> Result<String, DeliveryError> {
    let value = loaded.environment.get(name).or_else(|| loaded.dotenv.get(name));
    let value = value.map(str::trim).filter(|value| !value.is_empty());
    value.map(str::to_owned).ok_or_else(|| DeliveryError::setting(format!("`{name}` is not set")))
}

/// The URL of a receiver, which is a setting or in a variable.
pub(crate) fn setting_url(
    loaded: &LoadedConfig,
    target: &NoticeTarget,
    check: fn(&str) -> Result<(), &'static str>,
) -> Result<String, DeliveryError> {
    match (&target.settings.url, &target.settings.url_env) {
        // Checked with the configuration.
        (Some(url), _) => Ok(url.clone()),
        (None, Some(name)) => {
            let url = variable(loaded, name)?;
            check(&url).map_err(|fault| DeliveryError::setting(format!("`{name}` {fault}")))?;
            Ok(url)
        }
        (None, None) => {
            Err(DeliveryError::setting(format!("`{}.url` is not set", target.setting())))
        }
    }
}

/// Makes one attempt and records its result.
async fn attempt(
    loaded: &LoadedConfig,
    outbox: &NotificationOutbox,
    target: &NoticeTarget,
    message: &KeptMessage,
) -> Result<(), DeliveryError> {
    let sent = match target.settings.kind {
        TargetKind::Json | TargetKind::Slack | TargetKind::Teams | TargetKind::Discord => {
            // Boxed because the futures are large.
            Box::pin(webhook::post(loaded, target, message, now_ms())).await
        }
        TargetKind::Email => Box::pin(email::send(loaded, target, message)).await,
        TargetKind::Desktop => show_on_desktop(&message.body).await,
    };
    let error = sent.as_ref().err().map(|error| sanitize_line(&error.why));
    outbox.set_result(&target.name, &TargetResult { at_ms: now_ms(), error });
    sent
}

/// The message of a receiver, and how its delivery ended.
pub(crate) type FirstDelivery = (NoticeTarget, KeptMessage, Result<(), DeliveryError>);

/// Makes the first attempts for all receivers. A receiver that is down does not delay the others.
pub(crate) async fn deliver_first(
    loaded: &LoadedConfig,
    outbox: &NotificationOutbox,
    messages: Vec<(NoticeTarget, KeptMessage)>,
) -> Vec<FirstDelivery> {
    let mut done = Vec::new();
    let mut left = messages;
    for (round, delay) in RETRY_DELAYS.iter().enumerate() {
        tokio::time::sleep(*delay).await;
        let is_last = round + 1 == RETRY_DELAYS.len();
        for (target, message) in std::mem::take(&mut left) {
            match attempt(loaded, outbox, &target, &message).await {
                Err(error) if error.retry && !is_last => left.push((target, message)),
                Err(mut error) => {
                    if error.retry {
                        error.why.push_str(&format!(" ({} attempts)", RETRY_DELAYS.len()));
                    }
                    done.push((target, message, Err(error)));
                }
                Ok(()) => done.push((target, message, Ok(()))),
            }
        }
        if left.is_empty() {
            break;
        }
    }
    done
}

/// How many kept messages were delivered, how many are left, and what failed first for each
/// receiver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ResendResult {
    pub(crate) sent: usize,
    pub(crate) left: usize,
    pub(crate) failures: Vec<(NoticeTarget, DeliveryError)>,
}

/// Sends kept messages of these receivers that are due, oldest first. A receiver that fails does not
/// get the rest, and does not delay others. The caller holds the lock.
pub(crate) async fn resend(
    loaded: &LoadedConfig,
    outbox: &NotificationOutbox,
    to: &[NoticeTarget],
    due_at_ms: u64,
) -> std::io::Result<ResendResult> {
    let mut result = ResendResult::default();
    for mut kept in outbox.messages(now_ms())? {
        let Some(target) = to.iter().find(|target| target.name == kept.target) else { continue };
        let has_failed = result.failures.iter().any(|(failed, _)| failed.name == target.name);
        if has_failed || kept.next_at_ms > due_at_ms {
            result.left += 1;
            continue;
        }
        match attempt(loaded, outbox, target, &kept).await {
            Ok(()) => {
                outbox.remove(&kept)?;
                result.sent += 1;
            }
            Err(error) => {
                // An old desktop notification would only confuse.
                if target.settings.kind == TargetKind::Desktop {
                    outbox.remove(&kept)?;
                } else {
                    kept.postpone(now_ms());
                    outbox.write(&kept)?;
                    result.left += 1;
                }
                result.failures.push((target.clone(), error));
            }
        }
    }
    Ok(result)
}

/// Sends what is due, unless another process does.
pub(crate) async fn resend_due(loaded: &LoadedConfig) -> std::io::Result<ResendResult> {
    let outbox = NotificationOutbox::of(&loaded.locations.folders);
    let to = targets(loaded);
    if to.is_empty() || untrusted(loaded).is_some() {
        return Ok(ResendResult::default());
    }
    let Some(_lock) = lock_outbox(&outbox, BACKGROUND_LOCK_WAIT).await? else {
        return Ok(ResendResult { left: 1, ..ResendResult::default() });
    };
    resend(loaded, &outbox, &to, now_ms()).await
}

/// Waits for another process that sends messages. Returns `None` if it takes longer.
pub(crate) async fn lock_outbox(
    outbox: &NotificationOutbox,
    wait: Duration,
) -> std::io::Result<Option<OutboxLock>> {
    let until = Instant::now() + wait;
    loop {
        let lock = outbox.try_lock()?;
        if lock.is_some() || Instant::now() >= until {
            return Ok(lock);
        }
        tokio::time::sleep(LOCK_INTERVAL).await;
    }
}

/// Sends kept messages when they are due, until the server stops.
pub(crate) async fn resend_until(config: Option<PathBuf>, closing: CancellationToken) {
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(RESEND_INTERVAL) => {}
        }
        // Boxed because the future is large.
        Box::pin(resend_once(config.as_deref())).await;
    }
}

/// Reads the configuration again, so that a corrected setting needs no restart.
async fn resend_once(config: Option<&Path>) -> ResendResult {
    let Ok(loaded) = crate::config::load(config, toml::Table::new()) else {
        return ResendResult { left: 1, ..ResendResult::default() };
    };
    match resend_due(&loaded).await {
        Ok(result) => {
            for (target, error) in &result.failures {
                let (target, why) = (target.setting(), &error.why);
                tracing::warn!(target: "moothall::notify", target, why, "notice not delivered yet");
            }
            result
        }
        Err(error) => {
            tracing::warn!(target: "moothall::notify", %error, "notices not read");
            ResendResult { left: 1, ..ResendResult::default() }
        }
    }
}

/// The thread that sends the notices of this process about drafts. It keeps trying as long as the
/// process runs; then the outbox has the rest.
#[derive(Debug)]
struct DeliveryThread {
    wake: Mutex<Sender<()>>,
    progress: Arc<(Mutex<DeliveryProgress>, Condvar)>,
}

#[derive(Debug, Default)]
struct DeliveryProgress {
    requested: u64,
    done: u64,
    /// Failures of the last pass that some caller waited for.
    failures: Vec<(NoticeTarget, DeliveryError)>,
}

static THREAD: OnceLock<DeliveryThread> = OnceLock::new();

/// Starts to send the messages in the outbox, and returns immediately.
pub(crate) fn deliver_in_background(config: Option<&Path>) {
    let thread = THREAD.get_or_init(|| {
        let (wake, woken) = channel();
        let progress = Arc::default();
        let (config, shared) = (config.map(Path::to_owned), Arc::clone(&progress));
        std::thread::spawn(move || run_deliveries(config.as_deref(), &woken, &shared));
        DeliveryThread { wake: Mutex::new(wake), progress }
    });
    lock(&thread.progress.0).requested += 1;
    // If the thread could not start, the outbox has the message.
    let _ = lock(&thread.wake).send(());
}

fn run_deliveries(
    config: Option<&Path>,
    woken: &Receiver<()>,
    progress: &(Mutex<DeliveryProgress>, Condvar),
) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let mut has_left = false;
    loop {
        let is_over = match has_left {
            true => woken.recv_timeout(RESEND_INTERVAL) == Err(RecvTimeoutError::Disconnected),
            false => woken.recv().is_err(),
        };
        if is_over {
            return;
        }
        let seen = lock(&progress.0).requested;
        let result = runtime.block_on(resend_once(config));
        has_left = result.left > 0;
        let mut current = lock(&progress.0);
        if current.done < seen {
            current.failures = result.failures;
        }
        current.done = seen;
        progress.1.notify_all();
    }
}

/// Waits until the notices of this process are delivered or have failed once, and warns about those
/// that have failed. For the end of a command.
pub(crate) fn finish_deliveries() {
    let Some(thread) = THREAD.get() else { return };
    let (progress, changed) = &*thread.progress;
    let until = Instant::now() + EXIT_WAIT;
    let mut current = lock(progress);
    while current.done < current.requested {
        let Some(left) = until.checked_duration_since(Instant::now()) else { break };
        current = changed.wait_timeout(current, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    for (target, error) in std::mem::take(&mut current.failures) {
        warn_about(&target, &error);
    }
}

/// Says what failed, and who tries again.
pub(crate) fn warn_about(target: &NoticeTarget, error: &DeliveryError) {
    let (setting, why) = (target.setting(), &error.why);
    if target.settings.kind == TargetKind::Desktop {
        return warn(&format!("no desktop notification: {why}"));
    }
    warn(&format!(
        "`{setting}` failed: {why}; `moothall serve` and `moothall notify resend` try again"
    ));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn show_on_desktop(message: &str) -> Result<(), DeliveryError> {
    let mut command = tokio::process::Command::new("notify-send");
    command
        .args(["--app-name=moothall", "moothall", message])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(TIMEOUT, command.status()).await;
    match ended.map_err(|_| DeliveryError::setting("notify-send timed out"))? {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(DeliveryError::setting("notify-send found no desktop")),
        Err(error) => Err(DeliveryError::setting(format!("cannot start notify-send: {error}"))),
    }
}
