//! Selects the PostgreSQL database for runs, if one is configured.

use moothall_store::{InvalidPgAddress, PgAddress, PgStore, StoreError};

use crate::config::{ConfigFileSource, ConfigOrigin, LoadedConfig};
use crate::error::CliError;

/// URL of the database. Not a setting, because it may contain a password; no command prints it.
pub(crate) const DATABASE_URL_VARIABLE: &str = "MOOTHALL_DATABASE_URL";

#[derive(Debug, Clone)]
pub(crate) struct DatabaseConfig {
    pub(crate) address: PgAddress,
    pub(crate) connections: u32,
}

impl DatabaseConfig {
    /// The configured database. The variable takes precedence over the setting.
    pub(crate) fn of(loaded: &LoadedConfig) -> Result<Option<Self>, CliError> {
        let section = &loaded.resolved.config.store;
        let in_process = loaded.environment.get(DATABASE_URL_VARIABLE);
        let in_file = loaded.dotenv.get(DATABASE_URL_VARIABLE);
        let (text, setting_name) = match (in_process, in_file, section.url.as_deref()) {
            (Some(text), _, _) => (text, DATABASE_URL_VARIABLE),
            (None, Some(text), _) => {
                refuse_untrusted(loaded, true)?;
                (text, DATABASE_URL_VARIABLE)
            }
            (None, None, Some(text)) => {
                let origin = loaded.resolved.origin("store.url");
                let is_from_file =
                    matches!(origin, ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. });
                refuse_untrusted(loaded, is_from_file)?;
                (text, "store.url")
            }
            (None, None, None) => return Ok(None),
        };
        let address = text.parse().map_err(|error: InvalidPgAddress| {
            CliError::usage(format!("`{setting_name}` is invalid: {error}"))
        })?;
        Ok(Some(Self { address, connections: section.connections.clamp(1, 1_000) }))
    }

    pub(crate) async fn open(&self) -> Result<PgStore, CliError> {
        PgStore::open(&self.address, self.connections).await.map_err(|error| self.open_error(error))
    }

    /// Error for commands that need the runs in a local file.
    pub(crate) fn not_a_file(&self) -> CliError {
        let place = self.address.location();
        CliError::usage(format!("the runs are in the PostgreSQL database {place}, not in a file"))
            .with_hint("back it up with `pg_dump --schema=moothall --format=custom`")
    }

    fn open_error(&self, error: StoreError) -> CliError {
        let place = self.address.location();
        let opened = CliError::failed(format!("cannot open the database {place}"));
        match &error {
            StoreError::Unreachable(_) => opened
                .with_hint("check that the server is running and reachable with `moothall doctor`"),
            StoreError::ForeignDatabase { .. } => opened.with_hint(
                "its schema `moothall` contains tables of another program; use another database",
            ),
            _ => opened,
        }
        .with_source(error)
    }
}

/// A file in the working directory is untrusted and must not redirect the runs to its own database.
fn refuse_untrusted(loaded: &LoadedConfig, is_from_file: bool) -> Result<(), CliError> {
    let from_folder =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    if from_folder && is_from_file {
        return Err(CliError::usage(
            "an untrusted file in the working directory sets the database for runs",
        )
        .with_hint("if you trust it, pass `--config moothall.toml`"));
    }
    Ok(())
}

/// Rejects URLs with a password, because `moothall config show` prints the setting.
pub(crate) fn check_setting(url: &str) -> Result<(), String> {
    let user = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = user.rsplit_once('@').map_or("", |(user, _)| user);
    if user.contains(':') {
        return Err("must not contain a password".to_owned());
    }
    let read = url.parse::<PgAddress>();
    read.map(drop).map_err(|error| format!("is invalid: {error}"))
}
