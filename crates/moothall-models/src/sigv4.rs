//! AWS Signature Version 4, for Amazon Bedrock without an API key.
//!
//! Hand-written on `ring`, which is in every build already: `aws-sigv4` would add 20 crates for one
//! chain of HMACs. The tests are AWS's published test vectors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use reqwest::Url;
use ring::{digest, hmac};
use serde::Deserialize;

use crate::api_key::ApiKey;

/// The service that Amazon Bedrock signs for.
pub(crate) const BEDROCK_SERVICE: &str = "bedrock";

/// Credentials of an AWS account.
#[derive(Debug, Clone)]
pub struct AwsCredentials {
    access_key_id: String,
    secret: ApiKey,
    session_token: Option<ApiKey>,
}

/// The fields that `aws configure export-credentials` prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ExportedCredentials {
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    session_token: Option<String>,
}

impl AwsCredentials {
    /// Parses credentials in one of two forms: the JSON of `aws configure export-credentials`, or
    /// `ACCESS_KEY_ID:SECRET_ACCESS_KEY` with an optional `:SESSION_TOKEN`. `None` for other texts,
    /// such as an Amazon Bedrock API key.
    pub fn parse(text: &str) -> Option<Self> {
        let is_filled = |value: &String| !value.is_empty();
        if text.trim_start().starts_with('{') {
            let parsed: ExportedCredentials = serde_json::from_str(text).ok()?;
            let token = parsed.session_token.filter(is_filled);
            let (id, secret) = (parsed.access_key_id, parsed.secret_access_key);
            return (is_filled(&id) && is_filled(&secret)).then(|| Self::new(id, secret, token));
        }
        let mut parts = text.trim().splitn(3, ':').map(str::to_owned);
        let (id, secret, token) = (parts.next()?, parts.next()?, parts.next());
        // Access key ids are 16 to 128 capital letters and digits.
        let is_id =
            id.len() >= 16 && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        (is_id && is_filled(&secret)).then(|| Self::new(id, secret, token.filter(is_filled)))
    }

    pub fn new(access_key_id: String, secret: String, session_token: Option<String>) -> Self {
        let session_token = session_token.map(ApiKey::new);
        Self { access_key_id, secret: ApiKey::new(secret), session_token }
    }

    /// The credentials as one key, which [`Self::parse`] reads.
    pub fn into_key(self) -> ApiKey {
        let token = self.session_token.as_ref().map(|token| format!(":{}", token.expose()));
        let token = token.unwrap_or_default();
        ApiKey::new(format!("{}:{}{token}", self.access_key_id, self.secret.expose()))
    }

    /// The secret parts.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &ApiKey> {
        std::iter::once(&self.secret).chain(&self.session_token)
    }

    pub(crate) fn session_token(&self) -> Option<&ApiKey> {
        self.session_token.as_ref()
    }
}

/// What a signature is valid for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SigningScope<'a> {
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
    pub(crate) time: SystemTime,
}

/// The time in the format of the header `x-amz-date`.
pub(crate) fn amz_date(time: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// The value of the header `authorization`. `headers` are the signed ones, with lower-case names;
/// they must include `host` and `x-amz-date`.
pub(crate) fn authorization(
    credentials: &AwsCredentials,
    scope: SigningScope<'_>,
    method: &str,
    url: &Url,
    headers: &BTreeMap<String, String>,
    body: &[u8],
) -> String {
    let date_time = amz_date(scope.time);
    let date = date_time.get(..8).unwrap_or_default();
    let names: Vec<&str> = headers.keys().map(String::as_str).collect();
    let names = names.join(";");
    let canonical = canonical_request(method, url, headers, &names, body);
    let SigningScope { region, service, .. } = scope;
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let to_sign =
        format!("AWS4-HMAC-SHA256\n{date_time}\n{scope}\n{}", sha256(canonical.as_bytes()));
    let secret = format!("AWS4{}", credentials.secret.expose());
    let mut key = hmac_sha256(secret.as_bytes(), date.as_bytes());
    for part in [region, service, "aws4_request"] {
        key = hmac_sha256(key.as_ref(), part.as_bytes());
    }
    let signature = hex(hmac_sha256(key.as_ref(), to_sign.as_bytes()).as_ref());
    let id = &credentials.access_key_id;
    format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
}

fn canonical_request(
    method: &str,
    url: &Url,
    headers: &BTreeMap<String, String>,
    names: &str,
    body: &[u8],
) -> String {
    let mut query: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (encode(&name, false), encode(&value, false)))
        .collect();
    query.sort();
    let query: Vec<String> =
        query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let query = query.join("&");
    let mut lines = String::new();
    for (name, value) in headers {
        let value: Vec<&str> = value.split_whitespace().collect();
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{name}:{}", value.join(" "));
    }
    // The path of the URL is encoded already; all services but S3 expect it to be encoded twice.
    let path = encode(url.path(), true);
    format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{}", sha256(body))
}

fn encode(text: &str, keep_slashes: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if is_plain || (keep_slashes && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn hmac_sha256(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
