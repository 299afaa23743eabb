//! The programs of others that a cluster consists of. The scripts that find and install them are those
//! of `tools/`, which tests and operators use as well.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::CliError;

const RESTATE: &str = include_str!("../../../../../tools/restate/install.sh");
const POSTGRES: &str = include_str!("../../../../../tools/postgres/install.sh");

/// Where the programs are.
#[derive(Debug, Clone)]
pub(super) struct Installed {
    pub(super) restate: PathBuf,
    pub(super) postgres: PathBuf,
}

/// Whether what is missing may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetch {
    Nothing,
    Missing,
}

impl Installed {
    pub(super) fn find(fetch: Fetch) -> Result<Self, CliError> {
        // The small one first: whoever lacks both should not wait for 250 MB to hear of the other.
        let postgres = folder(POSTGRES, fetch)?.ok_or_else(|| match fetch {
            Fetch::Nothing => CliError::failed("PostgreSQL is not installed").with_hint(
                "`apt-get install postgresql`, or `moothall cluster up --install` as root",
            ),
            Fetch::Missing => CliError::failed("PostgreSQL cannot be installed")
                .with_hint("what apt-get said is above; it needs root and a Debian or Ubuntu"),
        })?;
        let restate = folder(RESTATE, fetch)?.ok_or_else(|| match fetch {
            Fetch::Nothing => CliError::failed("Restate's server is not installed").with_hint(
                "`moothall cluster up --install` gets it by npm: about 250 MB, under the Business \
                 Source License 1.1",
            ),
            Fetch::Missing => CliError::failed("Restate's server cannot be installed")
                .with_hint("what npm said is above; is npm there, and does it reach its registry?"),
        })?;
        Ok(Self { restate, postgres })
    }
}

/// What a script prints; nothing where it fails.
fn folder(script: &str, fetch: Fetch) -> Result<Option<PathBuf>, CliError> {
    let failed = |error: std::io::Error| {
        CliError::failed("bash cannot be started").with_source(error).with_hint("install bash")
    };
    let mut command = Command::new("bash");
    command.args(["-s", "--"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    if fetch == Fetch::Nothing {
        command.arg("--find");
    }
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(script.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((output.status.success() && !folder.is_empty()).then(|| PathBuf::from(folder)))
}

#[cfg(test)]
#[path = "installed_tests.rs"]
mod tests;
