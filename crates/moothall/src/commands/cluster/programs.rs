//! The third-party programs of a cluster. They are found and installed by the scripts in `tools/`,
//! which tests and operators use as well.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::CliError;

const RESTATE: &str = include_str!("../../../../../tools/restate/install.sh");
const POSTGRES: &str = include_str!("../../../../../tools/postgres/install.sh");

/// Directories of the programs.
#[derive(Debug, Clone)]
pub(crate) struct ClusterPrograms {
    pub(crate) restate: PathBuf,
    pub(crate) postgres: PathBuf,
}

/// Whether missing programs may be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallMode {
    Nothing,
    Missing,
}

impl ClusterPrograms {
    pub(crate) fn find(fetch: InstallMode) -> Result<Self, CliError> {
        // PostgreSQL first, because it is small: if both fail, the user learns it before a 250 MB
        // download.
        let postgres = folder(POSTGRES, fetch)?.ok_or_else(|| match fetch {
            InstallMode::Nothing => CliError::failed("PostgreSQL is not installed").with_hint(
                "run `apt-get install postgresql`, or `moothall cluster up --install` as root",
            ),
            InstallMode::Missing => CliError::failed("cannot install PostgreSQL")
                .with_hint("see the output of apt-get above; it needs root on Debian or Ubuntu"),
        })?;
        let restate = folder(RESTATE, fetch)?.ok_or_else(|| match fetch {
            InstallMode::Nothing => CliError::failed("the Restate server is not installed").with_hint(
                "run `moothall cluster up --install` to install it with npm (about 250 MB, Business \
                 Source License 1.1)",
            ),
            InstallMode::Missing => CliError::failed("cannot install the Restate server")
                .with_hint("see the output of npm above; check that npm is installed and can reach its registry"),
        })?;
        Ok(Self { restate, postgres })
    }
}

/// Output of a script; `None` if it fails.
fn folder(script: &str, fetch: InstallMode) -> Result<Option<PathBuf>, CliError> {
    let failed = |error: std::io::Error| {
        CliError::failed("cannot start bash").with_source(error).with_hint("install bash")
    };
    let mut command = Command::new("bash");
    command.args(["-s", "--"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    if fetch == InstallMode::Nothing {
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
#[path = "programs_tests.rs"]
mod tests;
