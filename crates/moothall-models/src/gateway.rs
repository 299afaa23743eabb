//! Makes all model calls: budget, replay, rate limits, retries, fallbacks and billing.

mod fallback_call;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use moothall_core::MicroUsd;
use moothall_core::model::{
    FailureKind, ModelFailure, ModelName, ModelReply, ModelRequest, UsageBasis,
};
use moothall_core::receipt::EffectTiming;

use crate::backend::{BillingRisk, FailedAttempt, ModelAttempt, ModelBackend, ReplyListener};
use crate::catalog::{Catalog, ModelCard};
use crate::demo::DemoBackend;
use crate::http::HttpBackend;
use crate::key_supply::ProviderSecrets;
use crate::ledger::{BudgetReservation, CallCost, RunLedger};
use crate::model_limiter::MAX_PAUSE;
use crate::provider_connections::ProviderConnections;
use crate::recording::RecordingStore;
use crate::reply_check::{CheckedReply, judge};
use crate::settings::RetrySettings;
use crate::shared_limiter::SharedLimiter;

/// Shortest delay between attempts in an outage, whatever the settings.
const MIN_DELAY: Duration = Duration::from_millis(10);

/// Options of a [`Gateway`].
#[derive(Debug)]
pub struct GatewayOptions {
    pub catalog: Catalog,
    /// API keys and secret headers by provider.
    pub keys: BTreeMap<String, ProviderSecrets>,
    pub retry: RetrySettings,
    pub recording: RecordingMode,
    /// Shared by all gateways of the process.
    pub connections: ProviderConnections,
}

/// Whether replies are recorded or replayed.
#[derive(Debug, Clone, Default)]
pub enum RecordingMode {
    #[default]
    Off,
    /// Call the model and record every reply.
    Record(RecordingStore),
    /// Return recorded replies and never call a model.
    Replay(RecordingStore),
}

/// Makes all model calls of a run. Rate limits belong to its [`ProviderConnections`].
#[derive(Debug)]
pub struct Gateway {
    catalog: Catalog,
    backends: BTreeMap<String, Arc<dyn ModelBackend>>,
    retry: RetrySettings,
    recording: RecordingMode,
    connections: ProviderConnections,
}

/// The result of a call and its timing.
#[derive(Debug)]
pub struct CallReport {
    pub result: Result<ModelReply, ModelFailure>,
    /// Latency and attempts. Separate because they differ between identical runs.
    pub timing: EffectTiming,
}

impl Gateway {
    /// Creates a gateway without connecting.
    pub fn new(options: GatewayOptions) -> Self {
        Self::build(options, None)
    }

    /// Creates a gateway that shares its limits with other processes.
    pub fn with_shared_limiter(
        options: GatewayOptions,
        shared_limiter: Arc<dyn SharedLimiter>,
    ) -> Self {
        Self::build(options, Some(shared_limiter))
    }

    fn build(options: GatewayOptions, shared_limiter: Option<Arc<dyn SharedLimiter>>) -> Self {
        let GatewayOptions { catalog, mut keys, retry, recording, connections } = options;
        let mut backends: BTreeMap<String, Arc<dyn ModelBackend>> = BTreeMap::new();
        for provider in catalog.providers() {
            let backend = HttpBackend::new(
                provider.clone(),
                keys.remove(&provider.name).unwrap_or_default(),
                &connections,
                shared_limiter.clone(),
            );
            backends.insert(provider.name.clone(), Arc::new(backend));
        }
        backends.insert(ModelName::DEMO.to_owned(), Arc::new(DemoBackend));
        Self { catalog, backends, retry, recording, connections }
    }

    /// Replaces the backend of a provider.
    #[must_use]
    pub fn with_backend(mut self, provider: &str, backend: Arc<dyn ModelBackend>) -> Self {
        self.backends.insert(provider.to_owned(), backend);
        self
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Upper bound on the cost and tokens of one attempt, by the most expensive model that may
    /// answer; the cost is unknown if any price is.
    pub fn max_cost(&self, request: &ModelRequest) -> CallCost {
        let costs = request.candidates().map(|model| self.max_cost_of(model, request));
        let usd = costs.map(|cost| cost.usd).reduce(|one, other| Some(one?.max(other?)));
        CallCost { usd: usd.flatten(), tokens: max_tokens(request) }
    }

    fn max_cost_of(&self, model: &ModelName, request: &ModelRequest) -> CallCost {
        let prices = self.catalog.card(model).prices;
        let usd = prices.map(|prices| prices.cost_at_most(request));
        CallCost { usd, tokens: max_tokens(request) }
    }

    /// Calls a model or one of its fallbacks, including retries, rate limits and billing. The ledger
    /// is correct whatever happens. Dropping the future cancels the call: a reservation that was not
    /// sent is released, and a sent request counts with its maximum cost.
    pub async fn call(
        &self,
        request: &ModelRequest,
        ledger: &RunLedger,
        mut listener: Option<&mut dyn ReplyListener>,
    ) -> CallReport {
        let started = Instant::now();
        let mut progress = CallProgress { reserved: self.max_cost(request), tries: 0 };
        // Boxed because the future of the retry loop is large and would be stored in every caller's
        // state.
        let result = if request.fallbacks.is_empty() || self.is_replay() {
            let patience = RetryPatience::UntilOutageEnds;
            let call =
                self.call_model(request, &request.model, ledger, listener, patience, &mut progress);
            Box::pin(call).await.map_err(|failed| failed.failure)
        } else {
            Box::pin(self.call_with_fallbacks(request, ledger, &mut listener, &mut progress)).await
        };
        if let Ok(reply) = &result {
            self.record(request, reply);
        }
        CallReport { result, timing: timing(started, progress.tries) }
    }

    fn is_replay(&self) -> bool {
        matches!(self.recording, RecordingMode::Replay(_))
    }

    fn address(&self, model: &ModelName) -> &str {
        self.catalog.provider(model.provider()).map_or("", |provider| provider.base_url.as_str())
    }

    /// Calls one model of a request.
    #[tracing::instrument(name = "model_call", skip_all, fields(%model, purpose = ?request.purpose, max_tokens = request.max_tokens))]
    async fn call_model(
        &self,
        request: &ModelRequest,
        model: &ModelName,
        ledger: &RunLedger,
        listener: Option<&mut dyn ReplyListener>,
        patience: RetryPatience,
        progress: &mut CallProgress,
    ) -> Result<ModelReply, CallFault> {
        let started = Instant::now();
        let tries_before = progress.tries;
        let own_request = match *model == request.model {
            true => Cow::Borrowed(request),
            false => Cow::Owned(ModelRequest { model: model.clone(), ..request.clone() }),
        };
        let result = self.call_until_done(&own_request, ledger, listener, patience, progress).await;
        let EffectTiming { latency_ms, tries } = timing(started, progress.tries - tries_before);
        match &result {
            Ok(reply) => tracing::info!(
                tries,
                latency_ms,
                prompt_tokens = reply.usage.prompt(),
                cache_read_tokens = reply.usage.cache_read,
                output_tokens = reply.usage.output,
                cost_micro_usd = reply.cost_micro_usd.map(MicroUsd::micros),
                "model call finished"
            ),
            Err(CallFault { failure, .. }) => {
                tracing::info!(tries, latency_ms, kind = failure.kind.code(), "model call failed")
            }
        }
        result
    }

    async fn call_until_done(
        &self,
        request: &ModelRequest,
        ledger: &RunLedger,
        mut listener: Option<&mut dyn ReplyListener>,
        patience: RetryPatience,
        progress: &mut CallProgress,
    ) -> Result<ModelReply, CallFault> {
        let card = self.catalog.card(&request.model);
        let worst_case = self.max_cost_of(&request.model, request);
        if let RecordingMode::Replay(recordings) = &self.recording {
            return Ok(replay(recordings, request, ledger, progress.reserved, listener).await?);
        }
        let backend = self
            .backends
            .get(request.model.provider())
            .ok_or_else(|| unknown_provider(&request.model))?;
        let address = self.address(&request.model);
        let outage = self.connections.call_outage();
        let mut failing_since = None;
        let mut delays = delays(&self.retry);
        let mut cost_at_most = worst_case.usd.map(|_| MicroUsd::ZERO);
        let mut before: Option<ModelFailure> = None;
        let mut tries = 0;
        loop {
            let reserved = ledger.reserve(progress.reserved).await;
            let reservation = reserved.map_err(|refusal| refused_after(refusal, before.take()))?;
            let reservation = reservation.with_bill_at_most(worst_case);
            tries += 1;
            progress.tries += 1;
            let listener_of_try =
                listener.as_mut().map(|listener| &mut **listener as &mut dyn ReplyListener);
            let (failure, cost) = match try_once(
                backend.as_ref(),
                request,
                &card,
                reservation,
                listener_of_try,
            )
            .await
            {
                Ok(reply) => {
                    self.connections.note_answered(address);
                    return Ok(reply);
                }
                Err(failed) => failed,
            };
            cost_at_most = cost_at_most.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
            let failure = ModelFailure { cost_at_most_micro_usd: cost_at_most, ..failure };
            let asked = failure.retry_after_ms.map(Duration::from_millis);
            if !failure.kind.is_retryable() || asked.is_some_and(|asked| asked > MAX_PAUSE) {
                return Err(failure.into());
            }
            let delay = delays.next().unwrap_or(self.retry.max_delay);
            let delay = asked.map_or(delay, |asked| asked.max(delay));
            let since = *failing_since.get_or_insert_with(Instant::now);
            // Attempts that may be billed are not repeated for long: each counts in full.
            let is_outage = failure.kind.pauses_run()
                && cost == Some(MicroUsd::ZERO)
                && self.connections.has_answered(address);
            let is_extra = tries > self.retry.retries;
            let delay = if is_extra { delay.max(MIN_DELAY) } else { delay };
            let is_patient = patience == RetryPatience::UntilOutageEnds
                && is_outage
                && since.elapsed().saturating_add(delay) <= self.retry.outage_wait;
            let is_last = self.retry.retries == 0 || (is_extra && !is_patient);
            if is_last || patience == RetryPatience::Once {
                return Err(CallFault { failure, is_outage });
            }
            outage.note_failing(address, &request.model, failure.kind);
            let (kind, delay_ms) =
                (failure.kind.code(), u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            if self.connections.is_worth_a_warning(address, tries, Instant::now()) {
                tracing::warn!(kind, delay_ms, tries, "model call failed, retrying");
            } else {
                tracing::debug!(kind, delay_ms, tries, "model call failed, retrying");
            }
            if let Some(listener) = &mut listener {
                listener.restart();
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = ledger.outage_waits_ended(), if is_outage => return Err(failure.into()),
            }
            // Concurrent calls find the same outage; the first one to give up decides for all.
            if patience == RetryPatience::Retries
                && self
                    .connections
                    .availability()
                    .is_unavailable(&self.availability_key(&request.model))
            {
                return Err(CallFault { failure, is_outage });
            }
            before = Some(failure);
        }
    }

    /// A failure to record does not discard the reply, which is already paid for.
    fn record(&self, request: &ModelRequest, reply: &ModelReply) {
        if let RecordingMode::Record(recordings) = &self.recording
            && let Err(failure) = recordings.keep(request, reply)
        {
            tracing::error!(detail = failure.detail, "could not record the reply");
        }
    }
}

/// What a call has reserved and tried, over all of its models.
pub(crate) struct CallProgress {
    /// The most that an attempt can cost, by the most expensive model.
    reserved: CallCost,
    tries: u32,
}

/// How long to call one model before giving up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryPatience {
    Once,
    Retries,
    /// For models without fallbacks.
    UntilOutageEnds,
}

/// A model that did not answer.
struct CallFault {
    failure: ModelFailure,
    /// Whether it answered before, and the failed attempt was not billed, so waiting may help.
    is_outage: bool,
}

impl From<ModelFailure> for CallFault {
    fn from(failure: ModelFailure) -> Self {
        Self { failure, is_outage: false }
    }
}

fn max_tokens(request: &ModelRequest) -> u64 {
    request.prompt_tokens_at_most().saturating_add(u64::from(request.max_tokens))
}

fn timing(started: Instant, tries: u32) -> EffectTiming {
    let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    EffectTiming { latency_ms, tries }
}

/// Delays between attempts: exponential, with jitter, capped at `max_delay`.
fn delays(retry: &RetrySettings) -> impl Iterator<Item = Duration> + use<> {
    let longest = retry.max_delay;
    ExponentialBuilder::default()
        .with_min_delay(retry.first_delay)
        .with_max_delay(longest)
        .without_max_times()
        .with_jitter()
        .build()
        .map(move |delay| delay.min(longest))
}

/// Makes one attempt and settles its cost. A failure includes the maximum it can have cost.
async fn try_once(
    backend: &dyn ModelBackend,
    request: &ModelRequest,
    card: &ModelCard,
    reservation: BudgetReservation<'_>,
    listener: Option<&mut dyn ReplyListener>,
) -> Result<ModelReply, (ModelFailure, Option<MicroUsd>)> {
    let listener = listener.map(|listener| &mut *listener as &mut dyn ReplyListener);
    let call = ModelAttempt { request, card, reservation: &reservation, listener };
    let answered = backend.answer(call).await;
    let bill_at_most = reservation.bill_at_most();
    match answered {
        Ok(answered) => {
            let CheckedReply { amount, basis, result } = judge(request, card, answered);
            settle(reservation, amount, basis);
            result.map_err(|failure| (failure, amount.usd))
        }
        Err(FailedAttempt { failure, bill: BillingRisk::None }) => {
            reservation.release();
            Err((failure, Some(MicroUsd::ZERO)))
        }
        Err(FailedAttempt { failure, bill: BillingRisk::Possible }) => {
            reservation.settle_unknown();
            Err((failure, bill_at_most.usd))
        }
    }
}

fn settle(reservation: BudgetReservation<'_>, amount: CallCost, basis: UsageBasis) {
    match basis {
        UsageBasis::Reported | UsageBasis::Bounded => reservation.settle(amount),
        // The provider bills replies without usage data too, including reasoning tokens.
        UsageBasis::Estimated => reservation.settle_unknown(),
    }
}

/// Keeps the error of the previous attempt if the budget does not allow another one.
fn refused_after(refusal: ModelFailure, before: Option<ModelFailure>) -> ModelFailure {
    let Some(before) = before else { return refusal };
    let detail = format!("{}; the previous attempt failed: {before}", refusal.detail);
    ModelFailure {
        cost_at_most_micro_usd: before.cost_at_most_micro_usd,
        ..ModelFailure::new(refusal.kind, detail)
    }
}

/// A replayed reply counts against the budget like the original, so a replay stops at the same
/// point.
async fn replay(
    recordings: &RecordingStore,
    request: &ModelRequest,
    ledger: &RunLedger,
    worst_case: CallCost,
    listener: Option<&mut dyn ReplyListener>,
) -> Result<ModelReply, ModelFailure> {
    let reservation = ledger.reserve(worst_case).await?;
    let reply = recordings.find(request)?;
    let amount = CallCost { usd: reply.cost_micro_usd, tokens: reply.usage.total() };
    settle(reservation, amount, reply.usage_basis);
    if let Some(listener) = listener {
        listener.text(&reply.text);
    }
    Ok(reply)
}

fn unknown_provider(model: &ModelName) -> ModelFailure {
    ModelFailure::new(FailureKind::NotFound, format!("unknown provider `{}`", model.provider()))
}

#[cfg(test)]
#[path = "gateway_tests.rs"]
mod tests;
