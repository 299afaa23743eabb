//! The address and headers of requests to a provider, with the API key and other secrets.

use std::collections::BTreeMap;
use std::time::SystemTime;

use moothall_core::model::{FailureKind, ModelFailure};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::api_key::ApiKey;
use crate::catalog::ModelProvider;
use crate::connection::is_loopback;
use crate::key_supply::{ProviderSecrets, SentSecrets};
use crate::settings::AuthScheme;
use crate::sigv4::{self, AwsCredentials, SigningScope};
use crate::wire;

/// The parts of a request that are the same for every call.
#[derive(Debug)]
pub(crate) struct RequestTarget {
    pub(crate) url: Url,
    headers: HeaderMap,
    auth: AuthScheme,
    region: Option<String>,
    /// Whether a secret may be sent.
    is_private: bool,
    secrets: ProviderSecrets,
}

/// The headers of one request.
#[derive(Debug)]
pub(crate) struct RequestHeaders {
    pub(crate) headers: HeaderMap,
    /// The key among them.
    pub(crate) key: Option<ApiKey>,
    pub(crate) secrets: SentSecrets,
}

impl RequestTarget {
    pub(crate) fn new(
        provider: &ModelProvider,
        path: &str,
        secrets: ProviderSecrets,
    ) -> Result<Self, ModelFailure> {
        let name = &provider.name;
        if let Some(missing) = provider.missing {
            let detail =
                format!("the address of {name} is incomplete: set `provider.{name}.{missing}`");
            return Err(ModelFailure::new(FailureKind::BadRequest, detail));
        }
        if secrets.key.is_none() && provider.needs_key() {
            let detail = format!("no API key for {name}: run `moothall key set {name}`");
            return Err(ModelFailure::new(FailureKind::Auth, detail));
        }
        let endpoint = wire::endpoint(provider.wire);
        let mut url = Url::parse(&format!("{}{path}", provider.base_url)).map_err(|error| {
            ModelFailure::new(FailureKind::BadRequest, format!("invalid base URL: {error}"))
        })?;
        let options = &provider.connection;
        if !options.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&options.query);
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in endpoint.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        for (name, value) in &options.headers {
            let value = HeaderValue::try_from(value).map_err(|_| invalid_header(name))?;
            headers.insert(header_name(name)?, value);
        }
        // A request to this machine leaves it if it goes through a proxy on another one.
        let stays_here = is_loopback(&url)
            && options
                .proxy
                .as_deref()
                .is_none_or(|proxy| Url::parse(proxy).is_ok_and(|proxy| is_loopback(&proxy)));
        let is_private = url.scheme() == "https" || stays_here;
        let (auth, region) = (provider.auth, provider.region.clone());
        Ok(Self { url, headers, auth, region, is_private, secrets })
    }

    /// The headers for a request with this body. Fetches secrets that are not known yet.
    pub(crate) async fn headers(
        &self,
        method: &str,
        body: &[u8],
    ) -> Result<RequestHeaders, ModelFailure> {
        let key = match &self.secrets.key {
            Some(supply) => Some(supply.get().await?),
            None => None,
        };
        self.with_key(key, method, body).await
    }

    /// The headers for a second try after the provider rejected the key, if there is another one.
    pub(crate) async fn headers_after(
        &self,
        rejected: &ApiKey,
        method: &str,
        body: &[u8],
    ) -> Option<RequestHeaders> {
        let key = self.secrets.key.as_ref()?.replacement_of(rejected).await?;
        self.with_key(Some(key), method, body).await.ok()
    }

    async fn with_key(
        &self,
        key: Option<ApiKey>,
        method: &str,
        body: &[u8],
    ) -> Result<RequestHeaders, ModelFailure> {
        let mut headers = self.headers.clone();
        let mut sent = Vec::new();
        for (name, supply) in &self.secrets.headers {
            let secret = supply.get().await?;
            headers.insert(header_name(name)?, self.secret_value("", &secret)?);
            sent.push(secret);
        }
        if let Some(key) = &key {
            sent.push(key.clone());
            match self.auth {
                AuthScheme::Bearer => {
                    headers.insert(AUTHORIZATION, self.secret_value("Bearer ", key)?);
                }
                AuthScheme::XApiKey => {
                    let name = HeaderName::from_static("x-api-key");
                    headers.insert(name, self.secret_value("", key)?);
                }
                AuthScheme::ApiKey => {
                    let name = HeaderName::from_static("api-key");
                    headers.insert(name, self.secret_value("", key)?);
                }
                AuthScheme::Aws => match AwsCredentials::parse(key.expose()) {
                    Some(credentials) => {
                        sent.extend(credentials.secrets().cloned());
                        self.sign(&credentials, method, body, &mut headers)?;
                    }
                    None => {
                        headers.insert(AUTHORIZATION, self.secret_value("Bearer ", key)?);
                    }
                },
            }
        }
        Ok(RequestHeaders { headers, key, secrets: SentSecrets::new(sent) })
    }

    fn sign(
        &self,
        credentials: &AwsCredentials,
        method: &str,
        body: &[u8],
        headers: &mut HeaderMap,
    ) -> Result<(), ModelFailure> {
        let Some(region) = &self.region else {
            let detail = "an AWS signature needs a region: set `region` in the provider's section";
            return Err(ModelFailure::new(FailureKind::BadRequest, detail));
        };
        let scope =
            SigningScope { region, service: sigv4::BEDROCK_SERVICE, time: SystemTime::now() };
        let host = self.url.host_str().unwrap_or_default();
        let host = self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let mut signed = BTreeMap::from([
            ("content-type".to_owned(), "application/json".to_owned()),
            ("host".to_owned(), host),
            ("x-amz-date".to_owned(), sigv4::amz_date(scope.time)),
        ]);
        if let Some(token) = credentials.session_token() {
            signed.insert("x-amz-security-token".to_owned(), token.expose().to_owned());
        }
        let value = sigv4::authorization(credentials, scope, method, &self.url, &signed, body);
        headers.insert(AUTHORIZATION, self.secret_value("", &ApiKey::new(value))?);
        for (name, value) in signed {
            // The HTTP client sets the host.
            if name.starts_with("x-amz-") {
                headers.insert(header_name(&name)?, self.secret_value("", &ApiKey::new(value))?);
            }
        }
        Ok(())
    }

    fn secret_value(&self, prefix: &str, secret: &ApiKey) -> Result<HeaderValue, ModelFailure> {
        if !self.is_private {
            let detail = "an API key is never sent over plain http to another machine; use https";
            return Err(ModelFailure::new(FailureKind::Auth, detail));
        }
        let value = HeaderValue::try_from(format!("{prefix}{}", secret.expose()));
        let mut value = value.map_err(|_| {
            ModelFailure::new(FailureKind::Auth, "the API key contains invalid characters")
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

fn header_name(name: &str) -> Result<HeaderName, ModelFailure> {
    HeaderName::try_from(name).map_err(|_| invalid_header(name))
}

fn invalid_header(name: &str) -> ModelFailure {
    ModelFailure::new(FailureKind::BadRequest, format!("the header `{name}` is invalid"))
}
