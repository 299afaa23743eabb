//! The one way to a model: budget, replay, limits, retries, bill.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use moothall_core::MicroUsd;
use moothall_core::model::{
    FailureKind, ModelFailure, ModelName, ModelReply, ModelRequest, UsageBasis,
};
use moothall_core::receipt::Timing;

use crate::backend::{Backend, Bill, Call, FailedTry, Listener};
use crate::catalog::{Catalog, ModelCard};
use crate::demo::Demo;
use crate::http::{Clients, HttpBackend};
use crate::judge::{Judged, judge};
use crate::lane::LONGEST_PAUSE;
use crate::ledger::{Amount, Ledger, Reservation};
use crate::recording::Recordings;
use crate::secret::Secret;
use crate::settings::RetrySettings;
use crate::turnstile::Turnstile;

/// What a gateway is made from.
#[derive(Debug)]
pub struct GatewayOptions {
    /// Providers and models.
    pub catalog: Catalog,
    /// Keys by provider.
    pub keys: BTreeMap<String, Secret>,
    /// How often and when to try again.
    pub retry: RetrySettings,
    /// Whether replies are kept or repeated.
    pub recording: RecordingMode,
}

/// Whether replies are kept or repeated.
#[derive(Debug, Clone, Default)]
pub enum RecordingMode {
    /// Neither.
    #[default]
    Off,
    /// Ask, and keep every reply.
    Record(Recordings),
    /// Never ask; repeat what was kept.
    Replay(Recordings),
}

/// The one way to a model. Cheap to share; one per process, because its limits are per process.
#[derive(Debug)]
pub struct Gateway {
    catalog: Catalog,
    backends: BTreeMap<String, Arc<dyn Backend>>,
    retry: RetrySettings,
    recording: RecordingMode,
}

/// What came of a call, and how long it took.
#[derive(Debug)]
pub struct CallReport {
    /// The reply, or why there is none.
    pub result: Result<ModelReply, ModelFailure>,
    /// Latency and tries; kept apart because they differ between equal runs.
    pub timing: Timing,
}

impl Gateway {
    /// Makes a gateway. Nothing is connected yet.
    pub fn new(options: GatewayOptions) -> Self {
        Self::make(options, None)
    }

    /// Makes a gateway whose calls go through a turnstile.
    pub fn behind(options: GatewayOptions, turnstile: Arc<dyn Turnstile>) -> Self {
        Self::make(options, Some(turnstile))
    }

    fn make(options: GatewayOptions, turnstile: Option<Arc<dyn Turnstile>>) -> Self {
        let GatewayOptions { catalog, mut keys, retry, recording } = options;
        let clients = Arc::new(Clients::default());
        let mut backends: BTreeMap<String, Arc<dyn Backend>> = BTreeMap::new();
        for provider in catalog.providers() {
            let backend = HttpBackend::new(
                provider.clone(),
                keys.remove(&provider.name),
                Arc::clone(&clients),
                turnstile.clone(),
            );
            backends.insert(provider.name.clone(), Arc::new(backend));
        }
        backends.insert(ModelName::DEMO.to_owned(), Arc::new(Demo));
        Self { catalog, backends, retry, recording }
    }

    /// Puts another source of answers in the place of a provider.
    #[must_use]
    pub fn with_backend(mut self, provider: &str, backend: Arc<dyn Backend>) -> Self {
        self.backends.insert(provider.to_owned(), backend);
        self
    }

    /// Providers and models as this gateway knows them.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The most that one try can use.
    pub fn most_of(&self, request: &ModelRequest) -> Amount {
        Amount {
            usd: self
                .catalog
                .card(&request.model)
                .prices
                .map(|prices| prices.cost_at_most(request)),
            tokens: request.prompt_tokens_at_most().saturating_add(u64::from(request.max_tokens)),
        }
    }

    /// Asks a model. Retries, waiting for limits and the bill happen inside; whatever happens, the
    /// ledger is right afterwards. Dropping the future cancels the call: what was not sent yet is
    /// given back, what was sent counts as the most that it can cost.
    #[tracing::instrument(name = "model_call", skip_all, fields(model = %request.model, purpose = ?request.purpose))]
    pub async fn call(
        &self,
        request: &ModelRequest,
        ledger: &Ledger,
        listener: Option<&mut dyn Listener>,
    ) -> CallReport {
        let started = Instant::now();
        let mut tries = 0;
        // Boxed: the retry loop is large, and a call that waits should cost a pointer in its
        // caller's state.
        let result = Box::pin(self.call_until_done(request, ledger, listener, &mut tries)).await;
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
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
            Err(failure) => {
                tracing::info!(tries, latency_ms, kind = failure.kind.code(), "model call failed")
            }
        }
        CallReport { result, timing: Timing { latency_ms, tries } }
    }

    async fn call_until_done(
        &self,
        request: &ModelRequest,
        ledger: &Ledger,
        mut listener: Option<&mut dyn Listener>,
        tries: &mut u32,
    ) -> Result<ModelReply, ModelFailure> {
        let card = self.catalog.card(&request.model);
        let worst = self.most_of(request);
        if let RecordingMode::Replay(recordings) = &self.recording {
            return replay(recordings, request, ledger, worst, listener).await;
        }
        let backend = self
            .backends
            .get(request.model.provider())
            .ok_or_else(|| unknown_provider(&request.model))?;
        let mut delays = delays(&self.retry);
        let mut cost_at_most = worst.usd.map(|_| MicroUsd::ZERO);
        let mut before: Option<ModelFailure> = None;
        loop {
            let reserved = ledger.reserve(worst).await;
            let reservation = reserved.map_err(|refusal| refused_after(refusal, before.take()))?;
            *tries += 1;
            let listener_of_try =
                listener.as_mut().map(|listener| &mut **listener as &mut dyn Listener);
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
                    self.record(request, &reply);
                    return Ok(reply);
                }
                Err(failed) => failed,
            };
            cost_at_most = cost_at_most.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
            let failure = ModelFailure { cost_at_most_micro_usd: cost_at_most, ..failure };
            let asked = failure.retry_after_ms.map(Duration::from_millis);
            if !failure.kind.is_retryable() || asked.is_some_and(|asked| asked > LONGEST_PAUSE) {
                return Err(failure);
            }
            let Some(delay) = delays.next() else { return Err(failure) };
            let delay = asked.map_or(delay, |asked| asked.max(delay));
            let (kind, delay_ms) =
                (failure.kind.code(), u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            tracing::warn!(kind, delay_ms, tries = *tries, "model call failed, trying again");
            if let Some(listener) = &mut listener {
                listener.restart();
            }
            before = Some(failure);
            tokio::time::sleep(delay).await;
        }
    }

    /// A reply that cannot be kept is still a reply, and it is paid for.
    fn record(&self, request: &ModelRequest, reply: &ModelReply) {
        if let RecordingMode::Record(recordings) = &self.recording
            && let Err(failure) = recordings.keep(request, reply)
        {
            tracing::error!(detail = failure.detail, "reply could not be recorded");
        }
    }
}

/// The pauses between tries: growing, jittered, and never longer than the longest.
fn delays(retry: &RetrySettings) -> impl Iterator<Item = Duration> + use<> {
    let longest = retry.max_delay;
    ExponentialBuilder::default()
        .with_min_delay(retry.first_delay)
        .with_max_delay(longest)
        .with_max_times(retry.retries as usize)
        .with_jitter()
        .build()
        .map(move |delay| delay.min(longest))
}

/// One try and its bill. A failure comes with the most that it can have cost.
async fn try_once(
    backend: &dyn Backend,
    request: &ModelRequest,
    card: &ModelCard,
    reservation: Reservation<'_>,
    listener: Option<&mut dyn Listener>,
) -> Result<ModelReply, (ModelFailure, Option<MicroUsd>)> {
    let listener = listener.map(|listener| &mut *listener as &mut dyn Listener);
    let call = Call { request, card, reservation: &reservation, listener };
    let answered = backend.answer(call).await;
    let worst = reservation.worst();
    match answered {
        Ok(answered) => {
            let Judged { amount, basis, result } = judge(request, card, answered);
            settle(reservation, amount, basis);
            result.map_err(|failure| (failure, amount.usd))
        }
        Err(FailedTry { failure, bill: Bill::None }) => {
            reservation.release();
            Err((failure, Some(MicroUsd::ZERO)))
        }
        Err(FailedTry { failure, bill: Bill::Possible }) => {
            reservation.settle_unknown();
            Err((failure, worst.usd))
        }
    }
}

fn settle(reservation: Reservation<'_>, amount: Amount, basis: UsageBasis) {
    match basis {
        UsageBasis::Reported | UsageBasis::Bounded => reservation.settle(amount),
        // An answer without a bill is billed all the same, thinking included.
        UsageBasis::Estimated => reservation.settle_unknown(),
    }
}

/// A budget that ends a call between two tries must not hide why there was a second one.
fn refused_after(refusal: ModelFailure, before: Option<ModelFailure>) -> ModelFailure {
    let Some(before) = before else { return refusal };
    let detail = format!("{}; the try before failed: {before}", refusal.detail);
    ModelFailure {
        cost_at_most_micro_usd: before.cost_at_most_micro_usd,
        ..ModelFailure::new(refusal.kind, detail)
    }
}

/// A repetition counts against the budget like the original, so that the same run stops at the same
/// place.
async fn replay(
    recordings: &Recordings,
    request: &ModelRequest,
    ledger: &Ledger,
    worst: Amount,
    listener: Option<&mut dyn Listener>,
) -> Result<ModelReply, ModelFailure> {
    let reservation = ledger.reserve(worst).await?;
    let reply = recordings.find(request)?;
    let amount = Amount { usd: reply.cost_micro_usd, tokens: reply.usage.total() };
    settle(reservation, amount, reply.usage_basis);
    if let Some(listener) = listener {
        listener.text(&reply.text);
    }
    Ok(reply)
}

fn unknown_provider(model: &ModelName) -> ModelFailure {
    ModelFailure::new(
        FailureKind::NotFound,
        format!("there is no provider called `{}`", model.provider()),
    )
}

#[cfg(test)]
#[path = "gateway_tests.rs"]
mod tests;
