//! Parses the address of the database and rejects unsafe or unsupported settings.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Maximum duration of one statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request waits for other writers of the same run.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long one of our transactions may be idle. A longer one belongs to a hung process and would
/// block its run.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The schema of all our tables, which keeps them apart from those of other programs.
pub(crate) const SCHEMA: &str = "moothall";

/// Allowed query parameters. sqlx would silently ignore unknown ones.
const PARAMETERS: [&str; 5] = ["host", "sslcert", "sslkey", "sslmode", "sslrootcert"];

/// The address of a PostgreSQL database: `postgres://user:password@host:port/database`.
///
/// It may contain a password, so it has no `Display`; use [`Self::location`] to print it.
#[derive(Clone)]
pub struct PgAddress {
    options: PgConnectOptions,
}

/// Why a text is not a valid database address. Never quotes the text, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPgAddress {
    /// The scheme is not `postgres://` or `postgresql://`.
    #[error("database URL must start with postgres://")]
    Scheme,
    /// The URL cannot be parsed.
    #[error("invalid database URL: expected postgres://user:password@host:5432/database")]
    Unreadable,
    /// The database name is missing.
    #[error("database URL has no database name: expected `…@host:5432/database`")]
    NoDatabase,
    /// An unsupported query parameter.
    #[error("unsupported parameter `{0}` in the database URL (supported: {known})", known = PARAMETERS.join(", "))]
    Parameter(String),
    /// Passwords and runs would be sent unencrypted over a network.
    #[error(
        "`sslmode={0}` does not enforce TLS, but the database is on another machine: \
         use verify-full, verify-ca or require, or omit it for verify-full"
    )]
    Clear(&'static str),
}

impl PgAddress {
    /// Whether a text looks like a PostgreSQL address.
    pub fn is_postgres_url(text: &str) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Location as `host:port/database`, which is safe to print.
    pub fn location(&self) -> String {
        let database = self.options.get_database().unwrap_or_default();
        match self.options.get_socket() {
            Some(socket) => format!("{}/{database}", socket.display()),
            None => {
                let (host, port) = (self.options.get_host(), self.options.get_port());
                format!("{host}:{port}/{database}")
            }
        }
    }

    /// The TLS mode, in PostgreSQL's terms.
    pub fn tls(&self) -> &'static str {
        mode_name(self.options.get_ssl_mode())
    }

    /// The options of every connection.
    pub(crate) fn options(&self) -> PgConnectOptions {
        let milliseconds = |time: Duration| time.as_millis().to_string();
        let options = self.options.clone().disable_statement_logging();
        options.application_name("moothall").options([
            ("search_path", SCHEMA.to_owned()),
            ("statement_timeout", milliseconds(STATEMENT_TIMEOUT)),
            ("lock_timeout", milliseconds(LOCK_TIMEOUT)),
            ("idle_in_transaction_session_timeout", milliseconds(IDLE_TIMEOUT)),
            // A generic plan would access and lock all sixteen partitions of a table; planning for
            // one run takes less time.
            ("plan_cache_mode", "force_custom_plan".to_owned()),
            // Detects a client that lost power after a minute and releases its locks.
            ("tcp_keepalives_idle", "30".to_owned()),
            ("tcp_keepalives_interval", "10".to_owned()),
            ("tcp_keepalives_count", "3".to_owned()),
            // After waiting for a lock, a transaction must see what the previous holder wrote.
            ("default_transaction_isolation", "read committed".to_owned()),
        ])
    }
}

impl FromStr for PgAddress {
    type Err = InvalidPgAddress;

    fn from_str(text: &str) -> Result<Self, InvalidPgAddress> {
        if !Self::is_postgres_url(text) {
            return Err(InvalidPgAddress::Scheme);
        }
        let query = text.split_once('?').map_or("", |(_, query)| query);
        let names = query.split('&').filter_map(|pair| pair.split('=').next());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        if let Some(stray) = names.iter().find(|name| !PARAMETERS.contains(name)) {
            // The name is safe to show; the value may be a secret.
            return Err(InvalidPgAddress::Parameter(printable(stray)));
        }
        let options: PgConnectOptions = text.parse().map_err(|_| InvalidPgAddress::Unreadable)?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err(InvalidPgAddress::NoDatabase);
        }
        if requires_tls(options.get_ssl_mode()) || is_local(&options) {
            return Ok(Self { options });
        }
        if names.contains(&"sslmode") {
            return Err(InvalidPgAddress::Clear(mode_name(options.get_ssl_mode())));
        }
        Ok(Self { options: options.ssl_mode(PgSslMode::VerifyFull) })
    }
}

impl fmt::Debug for PgAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PgAddress({})", self.location())
    }
}

/// Whether the connection stays on this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn requires_tls(mode: PgSslMode) -> bool {
    match mode {
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => false,
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => true,
    }
}

fn mode_name(mode: PgSslMode) -> &'static str {
    match mode {
        PgSslMode::Disable => "disable",
        PgSslMode::Allow => "allow",
        PgSslMode::Prefer => "prefer",
        PgSslMode::Require => "require",
        PgSslMode::VerifyCa => "verify-ca",
        PgSslMode::VerifyFull => "verify-full",
    }
}

/// The leading identifier characters of a name.
fn printable(name: &str) -> String {
    name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
