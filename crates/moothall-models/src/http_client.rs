//! Creates HTTP clients that also work on a system without CA certificates, such as a minimal
//! container.

use std::sync::Once;

use reqwest::{Certificate, Client, ClientBuilder};

/// Variables that replace the system's certificates.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

static NOTE: Once = Once::new();

/// Builds a client that trusts the system's CA certificates. If the system has none, it trusts the
/// built-in ones and logs a warning once.
///
/// If the user chose certificates that cannot be loaded, this fails: trusting others instead would
/// be a decision that the user did not make.
///
/// # Errors
///
/// Fails if the configuration is invalid or the chosen certificates cannot be loaded.
pub fn build_http_client(
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, reqwest::Error> {
    // Fails if another caller has installed a provider already; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let error = match configure(Client::builder()).build() {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    if let Some(variable) = CERTIFICATE_VARIABLES.into_iter().find(|name| is_set(name)) {
        NOTE.call_once(|| {
            tracing::warn!(
                "cannot load CA certificates: check the variable {variable}, or unset it"
            );
        });
        return Err(error);
    }
    let client = configure(Client::builder()).tls_certs_merge(built_in_roots()?).build();
    // A second failure has another cause, which the first error names just as well.
    let client = client.map_err(|_| error)?;
    NOTE.call_once(|| {
        tracing::warn!(
            "no CA certificates on this system, using the built-in ones; \
             to change this, install the package ca-certificates or set SSL_CERT_FILE"
        );
    });
    Ok(client)
}

/// An empty variable counts as not set.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The root certificates that Mozilla trusts.
fn built_in_roots() -> Result<Vec<Certificate>, reqwest::Error> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| Certificate::from_der(der)).collect()
}

#[cfg(test)]
#[path = "http_client_tests.rs"]
mod tests;
