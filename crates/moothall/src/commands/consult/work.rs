//! What a worker of a cluster needs for a consultation.

use std::sync::Arc;

use moothall_core::Effect;
use moothall_core::consult::Consult;
use moothall_engine::waves::Hands;
use moothall_engine::{GatherPerformer, ModelPerformer, Performer, Walls};
use moothall_models::{Amount, Budget, Ledger, Turnstile};

use super::drive::workflow;
use super::kept::Kept;
use super::prepare::Ready;
use crate::context::Context;
use crate::error::CliError;
use crate::pace::Pace;

/// A consultation whose models, evidence and walls are found on this machine.
pub(in crate::commands) struct Readied {
    kept: Kept,
    ready: Ready,
    pace: Pace,
}

impl std::fmt::Debug for Readied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readied").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Readied {
    pub(in crate::commands) async fn find(
        config: Option<&std::path::Path>,
        kept: Kept,
        turnstile: Arc<dyn Turnstile>,
        pace: Pace,
    ) -> Result<Self, CliError> {
        let model = kept.consult.models.default.clone();
        let mut context = Context::load(config, kept.settings.flags(Some(&model))?)?;
        context.turnstile = Some(turnstile);
        let ready = Ready::find(&context, &kept).await?;
        Ok(Self { kept, ready, pace })
    }

    pub(in crate::commands) fn workflow(&self) -> Result<Consult, CliError> {
        workflow(&self.kept)
    }

    pub(in crate::commands) fn walls(&self) -> Walls {
        self.ready.walls.clone()
    }

    pub(in crate::commands) fn budget(&self) -> Budget {
        let settings = &self.kept.settings;
        Budget { usd: settings.budget_micro_usd, tokens: settings.budget_tokens }
    }

    pub(in crate::commands) fn parallel_moves(&self) -> usize {
        self.kept.settings.parallel_moves.unwrap_or(15).max(1) as usize
    }

    /// Waits until nothing is left of any sandbox.
    pub(in crate::commands) async fn shut_down(&self) {
        self.ready.shut_down().await;
    }
}

impl Hands for Readied {
    fn performer(&self, ledger: Arc<Ledger>) -> Arc<dyn Performer> {
        let models = Arc::new(ModelPerformer::new(Arc::clone(&self.ready.gateway), ledger));
        self.pace.slow(Arc::new(GatherPerformer::new(models, self.ready.filings.clone())))
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
