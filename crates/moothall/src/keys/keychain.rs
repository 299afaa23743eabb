//! The keychain of the system: the Secret Service of a Linux desktop, the keychain of macOS.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use moothall_core::model::{FailureKind, ModelFailure};
use moothall_models::{ApiKey, KeyFuture, KeyResolver};

use crate::config::EnvVars;

/// The name under which the keychain lists our keys.
const SERVICE: &str = "moothall";

/// Long enough for a person to unlock the keychain.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why the keychain cannot be used. Never contains a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeychainError {
    #[error("the keychain does not answer: {0}")]
    Failed(String),
    #[error("the keychain did not answer within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
}

/// Whether a keychain may be there. A machine without a desktop has no session bus, and trying one
/// would only cost time.
pub(crate) fn may_exist(environment: &EnvVars) -> bool {
    if cfg!(target_os = "macos") {
        return true;
    }
    let has_bus = |folder: &str| Path::new(folder).join("bus").symlink_metadata().is_ok();
    environment.get("DBUS_SESSION_BUS_ADDRESS").is_some()
        || environment.get("XDG_RUNTIME_DIR").is_some_and(has_bus)
}

/// Stores a key and reads it back, so that a keychain that forgets is noticed.
pub(crate) fn store(provider: &str, key: &ApiKey) -> Result<(), KeychainError> {
    let (provider, key) = (provider.to_owned(), key.clone());
    in_time(move || {
        let entry = keyring::Entry::new(SERVICE, &provider)?;
        entry.set_password(key.expose())?;
        match entry.get_password()? == key.expose() {
            true => Ok(()),
            false => Err(keyring::Error::NoEntry),
        }
    })
}

/// Removes a key. A key that is not there is not an error.
pub(crate) fn remove(provider: &str) -> Result<(), KeychainError> {
    let provider = provider.to_owned();
    in_time(move || match keyring::Entry::new(SERVICE, &provider)?.delete_credential() {
        Err(keyring::Error::NoEntry) => Ok(()),
        done => done,
    })
}

fn read(provider: &str) -> Result<Option<ApiKey>, KeychainError> {
    let provider = provider.to_owned();
    in_time(move || match keyring::Entry::new(SERVICE, &provider)?.get_password() {
        Ok(key) => Ok(Some(ApiKey::new(key))),
        Err(keyring::Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    })
}

/// Runs in a separate thread: the keychain blocks while it asks the user, and cannot be cancelled.
fn in_time<T: Send + 'static>(
    work: impl FnOnce() -> keyring::Result<T> + Send + 'static,
) -> Result<T, KeychainError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(work());
    });
    match receiver.recv_timeout(TIMEOUT) {
        // The messages of the keychain name entries and services, never the secret.
        Ok(done) => done.map_err(|error| KeychainError::Failed(error.to_string())),
        Err(_) => Err(KeychainError::TimedOut),
    }
}

/// Reads the key of a provider from the keychain.
#[derive(Debug)]
pub(crate) struct KeychainResolver {
    pub(crate) provider: String,
}

impl KeyResolver for KeychainResolver {
    fn resolve(&self) -> KeyFuture<'_> {
        Box::pin(async {
            let provider = self.provider.clone();
            let found = tokio::task::spawn_blocking(move || read(&provider)).await;
            let detail = match found {
                Ok(Ok(Some(key))) => return Ok(key),
                Ok(Ok(None)) => {
                    let name = &self.provider;
                    format!("the keychain has no key for {name}: run `moothall key set {name}`")
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the keychain could not be read".to_owned(),
            };
            Err(ModelFailure::new(FailureKind::Auth, detail))
        })
    }
}
