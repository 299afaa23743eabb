//! What a worker of a cluster needs for a run that writes a program.

use std::sync::Arc;

use moothall_core::reflexion::Reflexion;
use moothall_core::{Effect, RunId};
use moothall_engine::waves::Hands;
use moothall_engine::{ModelPerformer, Performer, SandboxPerformer};
use moothall_models::{Amount, Budget, Ledger, Turnstile};
use moothall_store::Store;

use super::drive::{Ready, workflow};
use super::kept::Kept;
use crate::context::Context;
use crate::error::CliError;

/// A run whose model and sandboxes are found on this machine.
pub(in crate::commands) struct Readied {
    kept: Kept,
    ready: Ready,
    store: Arc<dyn Store>,
    run_id: RunId,
}

impl std::fmt::Debug for Readied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readied").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

impl Readied {
    pub(in crate::commands) async fn find(
        config: Option<&std::path::Path>,
        kept: Kept,
        store: Arc<dyn Store>,
        run_id: RunId,
        turnstile: Arc<dyn Turnstile>,
    ) -> Result<Self, CliError> {
        let input = &kept.reflexion;
        let mut context = Context::load(config, kept.settings.flags(Some(&input.model))?)?;
        context.turnstile = Some(turnstile);
        let (model, image, limits) = (&input.model, &input.image, input.limits);
        // Boxed: looking for sandboxes is large.
        let ready = Box::pin(Ready::find(&context, &kept.settings, model, image, limits)).await?;
        Ok(Self { kept, ready, store, run_id })
    }

    pub(in crate::commands) fn workflow(&self) -> Result<Reflexion, CliError> {
        workflow(self.kept.reflexion.clone())
    }

    pub(in crate::commands) fn budget(&self) -> Budget {
        self.kept.settings.budget()
    }

    /// Waits until nothing is left of any sandbox.
    pub(in crate::commands) async fn shut_down(&self) {
        self.ready.shut_down().await;
    }
}

impl Hands for Readied {
    fn performer(&self, ledger: Arc<Ledger>) -> Arc<dyn Performer> {
        let models = Arc::new(ModelPerformer::new(Arc::clone(&self.ready.gateway), ledger));
        let (executor, store) = (self.ready.executor.clone(), Arc::clone(&self.store));
        Arc::new(SandboxPerformer::new(models, executor, store, self.run_id.clone()))
    }

    fn most_of(&self, effect: &Effect) -> Amount {
        match effect {
            Effect::CallModel(request) => self.ready.gateway.most_of(request),
            Effect::Execute(_)
            | Effect::Gather(_)
            | Effect::Draft(_)
            | Effect::StartChild(_)
            | Effect::AskPerson(_) => Amount::default(),
        }
    }
}
