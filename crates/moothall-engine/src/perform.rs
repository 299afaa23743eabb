//! Performers turn effects into results.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use moothall_core::consult::{GatherFailure, GatherFailureKind};
use moothall_core::edit::DraftReply;
use moothall_core::model::ModelRequest;
use moothall_core::money::SpendTotals;
use moothall_core::receipt::EffectTiming;
use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind};
use moothall_core::{Effect, EffectId, EffectResult};
use moothall_models::{Gateway, ReplyListener, RunLedger};

/// Performs effects.
///
/// Implementors must guarantee:
/// - A bad answer is a result, never a panic.
/// - Dropping the future stops the work.
pub trait EffectPerformer: fmt::Debug + Send + Sync {
    /// Performs one effect of a run.
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a>;

    /// What the run has spent so far, counting calls in progress at their maximum cost; `None` if
    /// nothing has a cost.
    fn spent(&self) -> Option<SpendTotals> {
        None
    }

    /// Makes calls that wait for the end of an outage fail now, because the run pauses.
    fn end_outage_waits(&self) {}
}

/// The future of one effect. Boxed because the performer is chosen at run time.
pub type PerformFuture<'a> = Pin<Box<dyn Future<Output = TimedResult> + Send + 'a>>;

/// A result and its timing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedResult {
    pub result: EffectResult,
    /// Latency and number of attempts.
    pub timing: EffectTiming,
}

/// Creates the listener for a call, if the call is observed.
type Listeners = dyn Fn(&ModelRequest) -> Option<Box<dyn ReplyListener>> + Send + Sync;

/// Performs model calls through the gateway and charges them to one ledger.
pub struct ModelPerformer {
    gateway: Arc<Gateway>,
    ledger: Arc<RunLedger>,
    listeners: Box<Listeners>,
}

impl fmt::Debug for ModelPerformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelPerformer").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl ModelPerformer {
    /// Creates a performer without listeners.
    pub fn new(gateway: Arc<Gateway>, ledger: Arc<RunLedger>) -> Self {
        Self { gateway, ledger, listeners: Box::new(|_| None) }
    }

    /// Observes the calls for which `listeners` returns a listener.
    #[must_use]
    pub fn with_listeners(
        self,
        listeners: impl Fn(&ModelRequest) -> Option<Box<dyn ReplyListener>> + Send + Sync + 'static,
    ) -> Self {
        Self { listeners: Box::new(listeners), ..self }
    }
}

impl EffectPerformer for ModelPerformer {
    fn perform<'a>(&'a self, _: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            match effect {
                Effect::CallModel(request) => {
                    let mut listener = (self.listeners)(request);
                    let listener =
                        listener.as_mut().map(|listener| &mut **listener as &mut dyn ReplyListener);
                    let report = self.gateway.call(request, &self.ledger, listener).await;
                    TimedResult { result: report.result.into(), timing: report.timing }
                }
                // Runs that execute programs or gather evidence wrap this performer in one that
                // can.
                Effect::Execute(_) => unsupported(EffectResult::NotExecuted(SandboxFailure {
                    kind: SandboxFailureKind::NoEngine,
                    detail: "this run has no sandbox".to_owned(),
                })),
                Effect::Gather(_) => unsupported(EffectResult::NotGathered(GatherFailure {
                    kind: GatherFailureKind::Unavailable,
                    detail: "this run has no evidence source".to_owned(),
                })),
                Effect::Draft(_) => {
                    let why = "this run has no draft store".to_owned();
                    unsupported(EffectResult::Drafted(Box::new(DraftReply::Failed { why })))
                }
                // The driver handles these; a performer never makes up an answer.
                Effect::StartChild(_) | Effect::AskPerson(_) => {
                    unsupported(EffectResult::NotPerformed)
                }
            }
        })
    }

    fn spent(&self) -> Option<SpendTotals> {
        Some(self.ledger.spent_at_most())
    }

    fn end_outage_waits(&self) {
        self.ledger.end_outage_waits();
    }
}

/// The result of an effect that this run cannot perform.
fn unsupported(result: EffectResult) -> TimedResult {
    TimedResult { result, timing: EffectTiming { latency_ms: 0, tries: 0 } }
}
