//! A stored run that a command resumes.

use moothall_core::ErrorCode;
use moothall_engine::EngineError;
use moothall_store::RunRow;

use crate::error::CliError;
use crate::run_store::{self, RunStore};

/// A run to resume, with its store.
pub(crate) struct ResumableRun {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) local: RunStore,
    pub(crate) row: RunRow,
}

pub(crate) fn refuse_if_ended(row: &RunRow) -> Result<(), CliError> {
    if row.state.is_terminal() {
        let id = run_store::short_id(&row.run_id);
        return Err(CliError::usage(format!("run {} is already {}", row.run_id, row.state))
            .with_hint(format!("see `moothall show {id}`")));
    }
    Ok(())
}

/// The error for a run that cannot be locked.
pub(crate) fn lock_error(error: EngineError) -> CliError {
    match error {
        EngineError::Busy(run_id) => {
            let id = run_store::short_id(&run_id).to_owned();
            CliError::failed(format!("another process is executing run {run_id}"))
                .with_hint(format!("follow it with `moothall events {id} --follow`"))
                .with_code(ErrorCode::RunBusy)
        }
        error => CliError::failed("cannot lock the run").with_source(error),
    }
}
