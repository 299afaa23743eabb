//! Sends a message as mail: SMTP, always with TLS.

use std::time::Duration;

use lettre::message::{Mailbox, Message, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use moothall_core::causes;
use moothall_core::text::sanitize_line;
use reqwest::Url;

use super::body::MailBody;
use super::delivery::{DeliveryError, setting_url, variable};
use super::outbox::KeptMessage;
use super::targets::NoticeTarget;
use crate::config::{LoadedConfig, NotifyTarget, check_mail_url};
use crate::keys;

/// Timeout of one command of the protocol, and of a whole attempt.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// Makes one attempt.
pub(crate) async fn send(
    loaded: &LoadedConfig,
    target: &NoticeTarget,
    message: &KeptMessage,
) -> Result<(), DeliveryError> {
    let body: MailBody = serde_json::from_str(&message.body)
        .map_err(|_| DeliveryError::setting("the stored message is not a mail"))?;
    let mail = compose(&target.name, &target.settings, &message.id, body)?;
    let transport = transport(loaded, target).await?;
    match tokio::time::timeout(ATTEMPT_TIMEOUT, transport.send(mail)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(refusal(target, &error)),
        Err(_) => Err(timed_out()),
    }
}

/// The mail with its addresses. The id is the same for every attempt, so that mail programs
/// recognize a duplicate.
fn compose(
    name: &str,
    settings: &NotifyTarget,
    id: &str,
    body: MailBody,
) -> Result<Message, DeliveryError> {
    let address = |key: &str, text: &str| {
        text.parse::<Mailbox>().map_err(|_| {
            DeliveryError::setting(format!("`{key}` is not an email address")).with_hint(format!(
                "use an address like \"ada@example.com\" in `notify.target.{name}.{key}`"
            ))
        })
    };
    let from = address("from", settings.from.as_deref().unwrap_or_default())?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let id: String = format!("{id}.{name}").chars().filter(|c| plain(*c)).collect();
    let id = format!("<{id}@{}>", from.email.domain());
    let mut builder = Message::builder()
        .from(from)
        // A line break in a header would start another header.
        .subject(sanitize_line(&body.subject))
        .message_id(Some(id));
    for to in &settings.to {
        builder = builder.to(address("to", to)?);
    }
    builder
        .multipart(MultiPart::alternative_plain_html(body.text, body.html))
        .map_err(|error| DeliveryError::setting(format!("the mail cannot be composed: {error}")))
}

async fn transport(
    loaded: &LoadedConfig,
    target: &NoticeTarget,
) -> Result<AsyncSmtpTransport<Tokio1Executor>, DeliveryError> {
    let settings = &target.settings;
    let url = setting_url(loaded, target, check_mail_url)?;
    let url = Url::parse(&url).map_err(|error| DeliveryError::setting(error.to_string()))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let mut tls = TlsParameters::builder(host.clone());
    if let Some(path) = &settings.ca_file {
        let unusable = |why: &dyn std::fmt::Display| {
            DeliveryError::setting(format!("`ca_file` cannot be used: {why}"))
                .with_hint("use a PEM file with the certificate of an authority")
        };
        let pem = fs_err::read(path).map_err(|error| unusable(&error))?;
        let certificate = Certificate::from_pem(&pem).map_err(|error| unusable(&error))?;
        tls = tls.certificate_store(CertificateStore::None).add_root_certificate(certificate);
    }
    let tls = tls.build().map_err(|error| DeliveryError::setting(reason(&error)))?;
    let (tls, port) = match url.scheme() {
        "smtps" => (Tls::Wrapper(tls), 465),
        // Refuses servers that do not offer STARTTLS.
        _ => (Tls::Required(tls), 587),
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
        .port(url.port().unwrap_or(port))
        .tls(tls)
        .timeout(Some(COMMAND_TIMEOUT));
    if let Some(password) = password(loaded, target).await? {
        let user = match &settings.user_env {
            Some(name) => variable(loaded, name)?,
            None => settings.from.clone().unwrap_or_default(),
        };
        builder = builder.credentials(Credentials::new(user, password));
    }
    Ok(builder.build())
}

async fn password(
    loaded: &LoadedConfig,
    target: &NoticeTarget,
) -> Result<Option<String>, DeliveryError> {
    if let Some(name) = &target.settings.password_env {
        return variable(loaded, name).map(Some);
    }
    let name = keys::notify_secret(&target.name);
    let stored = keys::stored_secret(&loaded.locations.keys_file(), &name).await;
    stored.map_err(DeliveryError::setting)
}

fn timed_out() -> DeliveryError {
    DeliveryError::receiver("the mail server did not answer in time")
        .with_hint("check the host and the port; smtps:// needs a port with TLS, usually 465")
}

fn refusal(target: &NoticeTarget, error: &lettre::transport::smtp::Error) -> DeliveryError {
    let status = error.status().map(|code| code.to_string());
    match status.as_deref() {
        Some("530" | "534" | "535" | "538") => {
            let setting = target.setting();
            let stored = keys::notify_secret(&target.name);
            DeliveryError::setting("the mail server rejected the user name or password").with_hint(
                format!(
                    "check `{setting}.user_env` and `{setting}.password_env`, or run `moothall key set {stored}`"
                ),
            )
        }
        _ if error.is_timeout() => timed_out(),
        _ => {
            let why = reason(error);
            let is_certificate = why.to_lowercase().contains("certificate");
            let failed = DeliveryError::receiver(format!("the mail was not accepted: {why}"));
            match error.is_tls() || is_certificate {
                true => failed.with_hint(format!(
                    "set `{}.ca_file` to the authority of the mail server, if it is not a public one",
                    target.setting()
                )),
                false => failed,
            }
        }
    }
}

/// The innermost cause; the server may have written it.
fn reason(error: &lettre::transport::smtp::Error) -> String {
    let why = causes(error).last().map_or_else(|| error.to_string(), ToString::to_string);
    sanitize_line(&why).chars().take(200).collect()
}

#[cfg(test)]
#[path = "email_tests.rs"]
mod tests;
