//! Calls with fallbacks: the next model is called when one is unavailable.

use std::time::{Duration, Instant};

use moothall_core::model::{
    FailureKind, ModelFailure, ModelFallback, ModelName, ModelReply, ModelRequest,
};

use super::{CallFault, CallProgress, Gateway, MIN_DELAY, RetryPatience, delays, unknown_provider};
use crate::backend::ReplyListener;
use crate::ledger::RunLedger;
use crate::model_availability::ModelState;
use crate::model_limiter::MAX_PAUSE;

impl Gateway {
    /// Calls the models of a request in order of preference until one answers. Models that failed
    /// recently are called last. If none answers, repeats that until the outage is over.
    pub(crate) async fn call_with_fallbacks(
        &self,
        request: &ModelRequest,
        ledger: &RunLedger,
        listener: &mut Option<&mut dyn ReplyListener>,
        progress: &mut CallProgress,
    ) -> Result<ModelReply, ModelFailure> {
        let availability = self.connections.availability();
        let interval = self.retry.max_delay;
        let mut reason = None;
        let mut preferred = Vec::new();
        let mut unavailable = Vec::new();
        for model in request.candidates() {
            let key = self.availability_key(model);
            match availability.state(&key, Instant::now(), interval) {
                ModelState::Available => preferred.push((model, RetryPatience::Retries)),
                ModelState::Recheck => preferred.push((model, RetryPatience::Once)),
                ModelState::Unavailable(kind) => {
                    if *model == request.model {
                        reason = Some(kind);
                    }
                    unavailable.push((model, RetryPatience::Once));
                }
            }
        }
        let mut candidates = preferred;
        candidates.append(&mut unavailable);
        let outage = self.connections.call_outage();
        let mut failing_since = None;
        let mut delays = delays(&self.retry);
        loop {
            let mut failures: Vec<(&ModelName, CallFault)> = Vec::new();
            for (model, patience) in candidates {
                let own_listener =
                    listener.as_mut().map(|listener| &mut **listener as &mut dyn ReplyListener);
                let call =
                    self.call_model(request, model, ledger, own_listener, patience, progress);
                let key = self.availability_key(model);
                match call.await {
                    Ok(reply) => {
                        availability.note_answered(&key);
                        let reason = reason.filter(|_| *model != request.model);
                        let fallback =
                            reason.map(|reason| ModelFallback { model: model.clone(), reason });
                        let fallback = fallback.map(Box::new);
                        return Ok(ModelReply { fallback, ..reply });
                    }
                    Err(fault) if fault.failure.kind.allows_fallback() => {
                        let kind = fault.failure.kind;
                        if !is_momentary(&fault.failure) {
                            availability.note_failed(&key, kind, Instant::now(), interval);
                        }
                        if *model == request.model {
                            reason = Some(kind);
                        }
                        if let Some(listener) = listener {
                            listener.restart();
                        }
                        failures.push((model, fault));
                        // A pause ends the calls that wait; no other model may get them.
                        if ledger.has_ended_outage_waits() {
                            return Err(all_unavailable(request, failures));
                        }
                    }
                    Err(fault) => return Err(fault.failure),
                }
            }
            let since = *failing_since.get_or_insert_with(Instant::now);
            let delay = delays.next().unwrap_or(self.retry.max_delay).max(MIN_DELAY);
            let recovering: Vec<_> = failures
                .iter()
                .filter(|(_, fault)| fault.is_outage)
                .map(|(model, _)| (*model, RetryPatience::Once))
                .collect();
            let is_over = since.elapsed().saturating_add(delay) > self.retry.outage_wait;
            if recovering.is_empty() || is_over || self.retry.retries == 0 {
                return Err(all_unavailable(request, failures));
            }
            if let Some((model, fault)) = failures.iter().find(|(_, fault)| fault.is_outage) {
                outage.note_failing(self.address(model), model, fault.failure.kind);
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = ledger.outage_waits_ended() => return Err(all_unavailable(request, failures)),
            }
            candidates = recovering;
        }
    }

    /// Names a model and its server.
    pub(crate) fn availability_key(&self, model: &ModelName) -> String {
        format!("{model} {}", self.address(model))
    }
}

/// Whether only this call moves to a fallback: a rate limit is normal, and the limiter of the model
/// adapts to it. A provider that asks for a long delay has no quota left.
fn is_momentary(failure: &ModelFailure) -> bool {
    let asked = failure.retry_after_ms.map(Duration::from_millis);
    failure.kind == FailureKind::RateLimited && asked.is_none_or(|asked| asked <= MAX_PAUSE)
}

/// The failure of the requested model, with those of its fallbacks.
fn all_unavailable(request: &ModelRequest, failures: Vec<(&ModelName, CallFault)>) -> ModelFailure {
    let costs = failures.iter().map(|(_, fault)| fault.failure.cost_at_most_micro_usd);
    let cost_at_most_micro_usd = costs.sum();
    let is_requested = |(model, _): &&(&ModelName, CallFault)| **model == request.model;
    let requested = failures.iter().find(is_requested).or_else(|| failures.first());
    let Some((model, CallFault { failure: first, .. })) = requested else {
        return unknown_provider(&request.model);
    };
    let others = failures.iter().filter(|(other, _)| other != model);
    let others = others.map(|(other, fault)| format!("; {other}: {}", fault.failure));
    let detail = first.detail.clone() + &others.collect::<String>();
    let (status, retry_after_ms) = (first.status, first.retry_after_ms);
    ModelFailure {
        status,
        retry_after_ms,
        cost_at_most_micro_usd,
        ..ModelFailure::new(first.kind, detail)
    }
}
