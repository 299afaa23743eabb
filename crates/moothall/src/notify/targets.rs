//! The configured receivers.

use crate::config::{LoadedConfig, NoticeEvent, NotifyTarget, TargetKind};
use crate::error::CliError;

/// Name of the receiver that `notify.webhook` configures, also of messages that earlier versions
/// kept.
pub(crate) const WEBHOOK: &str = "webhook";
const DESKTOP: &str = "desktop";

const UNTRUSTED: &str =
    "ignored the [notify] settings of the untrusted moothall.toml in the working directory";

/// A receiver of notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoticeTarget {
    pub(crate) name: String,
    pub(crate) settings: NotifyTarget,
}

impl NoticeTarget {
    /// The setting that configures it, for messages.
    pub(crate) fn setting(&self) -> String {
        match self.name.as_str() {
            WEBHOOK | DESKTOP => format!("notify.{}", self.name),
            name => format!("notify.target.{name}"),
        }
    }

    pub(crate) fn wants(&self, event: NoticeEvent) -> bool {
        self.events().contains(&event)
    }

    pub(crate) fn events(&self) -> &[NoticeEvent] {
        match self.settings.events.as_slice() {
            [] if [WEBHOOK, DESKTOP].contains(&self.name.as_str()) => &NoticeEvent::OF_RUNS,
            [] => &NoticeEvent::ALL,
            chosen => chosen,
        }
    }

    /// The receiver as `notify test` prints it.
    pub(crate) fn description(&self) -> String {
        let kind = match self.settings.kind {
            TargetKind::Json => "the webhook",
            TargetKind::Slack => "Slack",
            TargetKind::Teams => "Teams",
            TargetKind::Discord => "Discord",
            TargetKind::Email => "the mail server",
            TargetKind::Desktop => "the desktop",
        };
        match self.name.as_str() {
            WEBHOOK | DESKTOP => kind.to_owned(),
            name => format!("{name} ({kind})"),
        }
    }
}

/// All receivers: those of `[notify]` itself, then the named ones.
pub(crate) fn targets(loaded: &LoadedConfig) -> Vec<NoticeTarget> {
    let section = &loaded.resolved.config.notify;
    let built_in = |name: &str, settings: NotifyTarget| NoticeTarget {
        name: name.to_owned(),
        settings: NotifyTarget { events: section.events.clone(), ..settings },
    };
    let mut all = Vec::new();
    if section.desktop {
        let settings = NotifyTarget { kind: TargetKind::Desktop, ..NotifyTarget::default() };
        all.push(built_in(DESKTOP, settings));
    }
    if section.webhook.is_some() || section.webhook_env.is_some() {
        let settings = NotifyTarget {
            kind: section.webhook_format.into(),
            url: section.webhook.clone(),
            url_env: section.webhook_env.clone(),
            secret_env: section.webhook_secret_env.clone(),
            ..NotifyTarget::default()
        };
        all.push(built_in(WEBHOOK, settings));
    }
    let named = section.target.iter();
    all.extend(
        named.map(|(name, settings)| NoticeTarget {
            name: name.clone(),
            settings: settings.clone(),
        }),
    );
    all
}

/// Like [`targets`], for a command: one of them, or all. It is an error if there are none.
pub(crate) fn chosen_targets(
    loaded: &LoadedConfig,
    only: Option<&str>,
) -> Result<Vec<NoticeTarget>, CliError> {
    if let Some(why) = untrusted(loaded) {
        return Err(CliError::usage(why).with_hint("pass the file with `--config`"));
    }
    let all = targets(loaded);
    let Some(only) = only else { return Ok(all) };
    let names: Vec<String> = all.iter().map(|target| target.name.clone()).collect();
    match all.into_iter().find(|target| target.name == only) {
        Some(target) => Ok(vec![target]),
        None => Err(CliError::usage(format!("unknown target `{only}`")).with_hint(
            match names.is_empty() {
                true => "add a section `[notify.target.NAME]` to the configuration".to_owned(),
                false => format!("configured targets: {}", names.join(", ")),
            },
        )),
    }
}

/// A `moothall.toml` in the working directory is untrusted: its author would learn about the user's
/// runs.
pub(crate) fn untrusted(loaded: &LoadedConfig) -> Option<&'static str> {
    loaded.is_set_by_untrusted_file("notify").then_some(UNTRUSTED)
}
