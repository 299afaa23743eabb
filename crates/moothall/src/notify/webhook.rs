//! Sends a message as a webhook request, signed as defined by Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moothall_core::causes;
use moothall_models::build_http_client;
use moothall_models::connection::is_loopback;
use reqwest::{Client, Url};
use ring::hmac;

use super::delivery::{DeliveryError, TIMEOUT, setting_url, variable};
use super::outbox::KeptMessage;
use super::targets::NoticeTarget;
use crate::config::{LoadedConfig, check_webhook};

/// Prefix of base64 secrets in Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

/// Makes one attempt.
pub(crate) async fn post(
    loaded: &LoadedConfig,
    target: &NoticeTarget,
    message: &KeptMessage,
    now_ms: u64,
) -> Result<(), DeliveryError> {
    let url = setting_url(loaded, target, check_webhook)?;
    let url = Url::parse(&url).map_err(|error| DeliveryError::setting(error.to_string()))?;
    // Receivers refuse old timestamps; the id shows that it is the same message.
    let timestamp = (now_ms / 1000).to_string();
    // Never send unsigned if a secret is configured.
    let secret = target.settings.secret_env.as_ref().map(|name| variable(loaded, name));
    let signature = secret
        .transpose()?
        .map(|secret| signature(&secret, &message.id, &timestamp, &message.body));
    let signature = signature.transpose().map_err(DeliveryError::setting)?;
    let client =
        client(&url).map_err(|error| DeliveryError::setting(error.without_url().to_string()))?;
    let mut request = client
        .post(url)
        .header("content-type", "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", &timestamp)
        .body(message.body.clone());
    if let Some(signature) = &signature {
        request = request.header("webhook-signature", signature);
    }
    // The URL may contain a secret, so no message contains it.
    match request.send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(DeliveryError::receiver(format!("status {}", answer.status()))),
        Err(error) if error.is_timeout() => {
            let seconds = TIMEOUT.as_secs();
            Err(DeliveryError::receiver(format!("no response within {seconds} seconds")))
        }
        Err(error) => Err(DeliveryError::receiver(root(&error.without_url()))),
    }
}

/// The Standard Webhooks signature over id, timestamp and body.
fn signature(secret: &str, id: &str, timestamp: &str, body: &str) -> Result<String, &'static str> {
    let key = match secret.strip_prefix(SECRET_PREFIX) {
        Some(coded) => STANDARD.decode(coded).map_err(|_| "the secret is not valid base64")?,
        None => secret.as_bytes().to_vec(),
    };
    let signed = format!("{id}.{timestamp}.{body}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
    Ok(format!("v1,{}", STANDARD.encode(tag)))
}

/// The innermost cause, such as a refused connection, which helps most.
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
#[path = "webhook_tests.rs"]
mod tests;
