//! `moothall guard` on systems without Linux namespaces.

use std::path::Path;

use crate::args::{GlobalArgs, GuardArgs};
use crate::error::{CliError, CliExit};

pub(crate) fn run(_global: &GlobalArgs, _args: &GuardArgs) -> anyhow::Result<CliExit> {
    Err(needs_linux().into())
}

pub(crate) async fn probe(_state: &Path) -> Result<&'static str, CliError> {
    Err(needs_linux())
}

fn needs_linux() -> CliError {
    CliError::usage("`moothall guard` needs Linux")
        .with_hint("run it in a Linux virtual machine, or use `moothall mcp`")
}
