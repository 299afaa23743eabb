//! A stored run that a command goes on with.

use moothall_core::ErrorCode;
use moothall_engine::EngineError;
use moothall_store::RunRow;

use crate::error::CliError;
use crate::local::{self, Local};

/// A run that is about to go on, and where it is kept.
pub(in crate::commands) struct Found {
    pub(in crate::commands) runtime: tokio::runtime::Runtime,
    pub(in crate::commands) local: Local,
    pub(in crate::commands) row: RunRow,
}

pub(in crate::commands) fn refuse_if_over(row: &RunRow) -> Result<(), CliError> {
    if row.state.is_terminal() {
        let id = local::short(&row.run_id);
        return Err(CliError::usage(format!("run {} is {} already", row.run_id, row.state))
            .with_hint(format!("see `moothall show {id}`")));
    }
    Ok(())
}

/// Why the right to drive a run cannot be had.
pub(in crate::commands) fn unlocked(error: EngineError) -> CliError {
    match error {
        EngineError::Busy(run_id) => {
            let id = local::short(&run_id).to_owned();
            CliError::failed(format!("another process drives run {run_id}"))
                .with_hint(format!("follow it: `moothall events {id} --follow`"))
                .with_code(ErrorCode::RunBusy)
        }
        error => CliError::failed("the run cannot be driven").with_source(error),
    }
}
