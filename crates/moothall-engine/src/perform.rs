//! Performing effects.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use moothall_core::consult::{GatherFailure, GatherFailureKind};
use moothall_core::edit::DraftReply;
use moothall_core::money::Spent;
use moothall_core::receipt::Timing;
use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind};
use moothall_core::{Effect, EffectId, EffectResult};
use moothall_models::{Gateway, Ledger, Listener};

/// Turns a wish into its result.
///
/// What implementors promise:
/// - A bad answer is a result, never a panic.
/// - Dropping the future stops the work.
pub trait Performer: fmt::Debug + Send + Sync {
    /// Performs one effect of a run.
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a>;

    /// What the run has spent by now, with everything under way counted in full; `None` where
    /// nothing costs anything.
    fn spent(&self) -> Option<Spent> {
        None
    }
}

/// The future of one effect. Boxed because the performer is chosen at run time.
pub type PerformFuture<'a> = Pin<Box<dyn Future<Output = Performed> + Send + 'a>>;

/// A result and how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    /// What came back.
    pub result: EffectResult,
    /// Latency and tries.
    pub timing: Timing,
}

/// Makes the listener of a call, where somebody watches.
type Listeners = dyn Fn(&EffectId) -> Option<Box<dyn Listener>> + Send + Sync;

/// Performs model calls through the gateway, on one ledger.
pub struct ModelPerformer {
    gateway: Arc<Gateway>,
    ledger: Arc<Ledger>,
    listeners: Box<Listeners>,
}

impl fmt::Debug for ModelPerformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelPerformer").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl ModelPerformer {
    /// Nobody watches.
    pub fn new(gateway: Arc<Gateway>, ledger: Arc<Ledger>) -> Self {
        Self { gateway, ledger, listeners: Box::new(|_| None) }
    }

    /// Lets somebody watch the calls for which `listeners` gives a listener.
    #[must_use]
    pub fn watched_by(
        self,
        listeners: impl Fn(&EffectId) -> Option<Box<dyn Listener>> + Send + Sync + 'static,
    ) -> Self {
        Self { listeners: Box::new(listeners), ..self }
    }
}

impl Performer for ModelPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            match effect {
                Effect::CallModel(request) => {
                    let mut listener = (self.listeners)(id);
                    let listener =
                        listener.as_mut().map(|listener| &mut **listener as &mut dyn Listener);
                    let report = self.gateway.call(request, &self.ledger, listener).await;
                    Performed { result: report.result.into(), timing: report.timing }
                }
                // A run that may execute programs or gather evidence has a performer that can.
                Effect::Execute(_) => without_means(EffectResult::NotExecuted(SandboxFailure {
                    kind: SandboxFailureKind::NoEngine,
                    detail: "this run has no sandbox".to_owned(),
                })),
                Effect::Gather(_) => without_means(EffectResult::NotGathered(GatherFailure {
                    kind: GatherFailureKind::Unavailable,
                    detail: "this run has no source of evidence".to_owned(),
                })),
                Effect::Draft(_) => {
                    let why = "this run has no store of drafts".to_owned();
                    without_means(EffectResult::Drafted(Box::new(DraftReply::Failed { why })))
                }
                // The driver's own. No performer makes an answer up.
                Effect::StartChild(_) | Effect::AskPerson(_) => {
                    without_means(EffectResult::NotPerformed)
                }
            }
        })
    }

    fn spent(&self) -> Option<Spent> {
        Some(self.ledger.spent_at_most())
    }
}

/// The answer to a wish that this run has no means for.
fn without_means(result: EffectResult) -> Performed {
    Performed { result, timing: Timing { latency_ms: 0, tries: 0 } }
}
