//! Where the database is, and what its owner must not be able to say by mistake.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The longest that one statement may take. Whatever needs more is stuck.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request waits for others that write to the same run.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a transaction of ours may do nothing. One that does is of a process that hangs, and
/// would keep its run from everyone.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The schema that holds all our tables, so that nobody else's are touched.
pub(super) const SCHEMA: &str = "moothall";

/// What an address may say behind `?`. Anything else would be ignored in silence.
const PARAMETERS: [&str; 5] = ["host", "sslcert", "sslkey", "sslmode", "sslrootcert"];

/// The address of a PostgreSQL database: `postgres://user:password@host:port/database`.
///
/// It may hold a password, so it cannot be printed; [`Self::place`] can.
#[derive(Clone)]
pub struct PgAddress {
    options: PgConnectOptions,
}

/// Why a text is not the address of a database. It never quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPgAddress {
    /// It does not begin as an address of PostgreSQL does.
    #[error("an address of a database begins with postgres://")]
    Scheme,
    /// It cannot be read.
    #[error("not an address like postgres://user:password@host:5432/database")]
    Unreadable,
    /// It does not say which database.
    #[error(
        "the address does not name a database, as the last part of `…@host:5432/database` does"
    )]
    NoDatabase,
    /// It holds something that would be ignored.
    #[error("an address of a database cannot say `{0}`, only {known}", known = PARAMETERS.join(", "))]
    Parameter(String),
    /// Passwords and runs would cross a network in the clear.
    #[error(
        "the database is on another machine, and `sslmode={0}` does not insist on TLS: \
         use verify-full, verify-ca or require, or leave it out for verify-full"
    )]
    Clear(&'static str),
}

impl PgAddress {
    /// Whether a text is meant to be the address of a PostgreSQL database.
    pub fn is_meant(text: &str) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Where it is, as `host:port/database`: all of it that may be printed.
    pub fn place(&self) -> String {
        let database = self.options.get_database().unwrap_or_default();
        match self.options.get_socket() {
            Some(socket) => format!("{}/{database}", socket.display()),
            None => {
                let (host, port) = (self.options.get_host(), self.options.get_port());
                format!("{host}:{port}/{database}")
            }
        }
    }

    /// How the connection is protected, in PostgreSQL's own word.
    pub fn tls(&self) -> &'static str {
        mode_name(self.options.get_ssl_mode())
    }

    /// How every connection is made.
    pub(super) fn options(&self) -> PgConnectOptions {
        let milliseconds = |time: Duration| time.as_millis().to_string();
        let options = self.options.clone().disable_statement_logging();
        options.application_name("moothall").options([
            ("search_path", SCHEMA.to_owned()),
            ("statement_timeout", milliseconds(STATEMENT_TIMEOUT)),
            ("lock_timeout", milliseconds(LOCK_TIMEOUT)),
            ("idle_in_transaction_session_timeout", milliseconds(IDLE_TIMEOUT)),
            // A plan for any run would look at all sixteen pieces of a table, and lock them; to
            // plan for one run takes less time than that.
            ("plan_cache_mode", "force_custom_plan".to_owned()),
            // A machine that lost its power is noticed after a minute, and what it held is free.
            ("tcp_keepalives_idle", "30".to_owned()),
            ("tcp_keepalives_interval", "10".to_owned()),
            ("tcp_keepalives_count", "3".to_owned()),
            // A lock that was waited for must show what its holder wrote.
            ("default_transaction_isolation", "read committed".to_owned()),
        ])
    }
}

impl FromStr for PgAddress {
    type Err = InvalidPgAddress;

    fn from_str(text: &str) -> Result<Self, InvalidPgAddress> {
        if !Self::is_meant(text) {
            return Err(InvalidPgAddress::Scheme);
        }
        let query = text.split_once('?').map_or("", |(_, query)| query);
        let names = query.split('&').filter_map(|pair| pair.split('=').next());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        if let Some(stray) = names.iter().find(|name| !PARAMETERS.contains(name)) {
            // A name is ours to show; a value could be a secret.
            return Err(InvalidPgAddress::Parameter(printable(stray)));
        }
        let options: PgConnectOptions = text.parse().map_err(|_| InvalidPgAddress::Unreadable)?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err(InvalidPgAddress::NoDatabase);
        }
        if insists(options.get_ssl_mode()) || is_near(&options) {
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
        write!(f, "PgAddress({})", self.place())
    }
}

/// Whether nothing leaves this machine on the way there.
fn is_near(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn insists(mode: PgSslMode) -> bool {
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

/// The beginning of a name, if it is one.
fn printable(name: &str) -> String {
    name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
