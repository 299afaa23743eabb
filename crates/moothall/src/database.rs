//! Where runs are kept when not in a file of this machine: the address of a PostgreSQL database, and
//! who may say it.

use moothall_store::{InvalidPgAddress, PgAddress, PgStore, StoreError};

use crate::config::{FoundBy, Loaded, Origin};
use crate::error::CliError;

/// The variable that holds the address of the database. It may hold a password, so it is no setting,
/// and no command shows it.
pub(crate) const DATABASE_URL_VARIABLE: &str = "MOOTHALL_DATABASE_URL";

/// A database that runs are kept in.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) address: PgAddress,
    pub(crate) connections: u32,
}

impl Database {
    /// The database that runs are kept in, where somebody says so: the variable before the setting.
    pub(crate) fn of(loaded: &Loaded) -> Result<Option<Self>, CliError> {
        let section = &loaded.resolved.config.store;
        let in_process = loaded.environment.get(DATABASE_URL_VARIABLE);
        let in_file = loaded.dotenv.get(DATABASE_URL_VARIABLE);
        let (text, said_by) = match (in_process, in_file, section.url.as_deref()) {
            (Some(text), _, _) => (text, DATABASE_URL_VARIABLE),
            (None, Some(text), _) => {
                refuse_stranger(loaded, true)?;
                (text, DATABASE_URL_VARIABLE)
            }
            (None, None, Some(text)) => {
                let origin = loaded.resolved.origin("store.url");
                let theirs = matches!(origin, Origin::File { .. } | Origin::DotEnv { .. });
                refuse_stranger(loaded, theirs)?;
                (text, "store.url")
            }
            (None, None, None) => return Ok(None),
        };
        let address = text.parse().map_err(|error: InvalidPgAddress| {
            CliError::usage(format!("`{said_by}` cannot be used: {error}"))
        })?;
        Ok(Some(Self { address, connections: section.connections.clamp(1, 1_000) }))
    }

    pub(crate) async fn open(&self) -> Result<PgStore, CliError> {
        PgStore::open(&self.address, self.connections).await.map_err(|error| self.unopened(error))
    }

    /// What a person is told who wants the runs as a file.
    pub(crate) fn not_a_file(&self) -> CliError {
        let place = self.address.place();
        CliError::usage(format!("the runs are in the database {place}, not in a file")).with_hint(
            "back it up with PostgreSQL's own tools: `pg_dump --schema=moothall --format=custom`",
        )
    }

    fn unopened(&self, error: StoreError) -> CliError {
        let place = self.address.place();
        let opened = CliError::failed(format!("the runs in the database {place} cannot be read"));
        match &error {
            StoreError::Unreachable(_) => opened.with_hint(
                "is the server running, and may this machine reach it? `moothall doctor` tries it",
            ),
            StoreError::ForeignDatabase { .. } => opened.with_hint(
                "its schema `moothall` holds tables of another program: use another database",
            ),
            _ => opened,
        }
        .with_source(error)
    }
}

/// A file that merely lies in the working folder may come from a stranger, who would have the runs.
fn refuse_stranger(loaded: &Loaded, theirs: bool) -> Result<(), CliError> {
    let from_folder = loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
    if from_folder && theirs {
        return Err(CliError::usage(
            "a file in this folder decides in which database runs are kept",
        )
        .with_hint("if you trust it, name it: `--config moothall.toml`"));
    }
    Ok(())
}

/// Whether an address is one that a setting may hold: `moothall config show` shows it.
pub(crate) fn check_setting(url: &str) -> Result<(), String> {
    let user = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = user.rsplit_once('@').map_or("", |(user, _)| user);
    if user.contains(':') {
        return Err("holds a password".to_owned());
    }
    let read = url.parse::<PgAddress>();
    read.map(drop).map_err(|error| format!("cannot be used: {error}"))
}
