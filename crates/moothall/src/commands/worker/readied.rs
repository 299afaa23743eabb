//! A run of either kind, with what it needs on this machine.

use std::path::Path;
use std::sync::Arc;

use moothall_core::consult::Consult;
use moothall_core::reflexion::Reflexion;
use moothall_engine::Walls;
use moothall_models::Turnstile;
use moothall_restate::Opened;
use moothall_store::{RunRow, Store};

use crate::commands::{consult, run};
use crate::error::CliError;
use crate::pace::Pace;

#[derive(Debug)]
pub(super) enum Readied {
    Consult(Arc<consult::Readied>),
    Code(Arc<run::Readied>),
}

impl Readied {
    pub(super) async fn find(
        config: Option<&Path>,
        store: &Arc<dyn Store>,
        row: &RunRow,
        turnstile: Arc<dyn Turnstile>,
        pace: Pace,
    ) -> Result<Self, CliError> {
        // Boxed: looking for sandboxes is large.
        match row.workflow.as_str() {
            Consult::NAME => {
                let kept = consult::Kept::read(&row.input)?;
                let found = Box::pin(consult::Readied::find(config, kept, turnstile, pace)).await?;
                Ok(Self::Consult(Arc::new(found)))
            }
            Reflexion::NAME => {
                let kept = run::Kept::read(&row.input)?;
                let (store, run_id) = (Arc::clone(store), row.run_id.clone());
                let found = run::Readied::find(config, kept, store, run_id, turnstile);
                let found = Box::pin(found).await?;
                Ok(Self::Code(Arc::new(found)))
            }
            other => Err(CliError::failed(format!("a `{other}` is not driven by workers"))),
        }
    }

    /// The run at its beginning.
    pub(super) fn opened(&self, store: Arc<dyn Store>) -> Result<Opened, CliError> {
        Ok(match self {
            Self::Consult(found) => Opened {
                store,
                workflow: Box::new(found.workflow()?),
                walls: found.walls(),
                budget: found.budget(),
                parallel_children: found.parallel_moves(),
                hands: found.clone(),
            },
            Self::Code(found) => Opened {
                store,
                workflow: Box::new(found.workflow()?),
                walls: Walls::None,
                budget: found.budget(),
                parallel_children: 1,
                hands: found.clone(),
            },
        })
    }

    /// Waits until nothing is left of any sandbox.
    pub(super) async fn shut_down(&self) {
        match self {
            Self::Consult(found) => found.shut_down().await,
            Self::Code(found) => found.shut_down().await,
        }
    }
}
