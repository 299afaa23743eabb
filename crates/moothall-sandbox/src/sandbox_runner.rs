//! Chooses an engine and runs programs on it, with a pool and retries.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::sandbox::{ExecuteRequest, GuestPath, IsolationClass, SandboxLabels, SelfTest};

use crate::engine::attestation;
use crate::lease::{LeaseOutcome, SandboxLease};
use crate::pool::{PoolOptions, PooledSandbox, SandboxPool};
use crate::probe::ProbeReport;
use crate::{EngineName, OutputListener, SandboxEngine, SandboxError, SandboxSpec};

/// A failed lease is retried twice, each time with a fresh sandbox.
const MAX_ATTEMPTS: u32 = 3;

/// Requirements for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Use only this engine; `None` selects the strongest.
    pub engine: Option<EngineName>,
    /// Minimum isolation.
    pub minimum: IsolationClass,
    /// Whether containers on the host's kernel are acceptable. They are used only if explicitly
    /// accepted.
    pub shared_kernel: SharedKernel,
}

/// Whether a sandbox may share the host's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKernel {
    /// Explicitly accepted by the user.
    Accepted,
    /// The default.
    Refused,
}

impl SandboxPolicy {
    /// Whether an engine with this name and class is acceptable.
    pub fn allows(&self, engine: EngineName, class: IsolationClass) -> bool {
        self.engine.is_none_or(|only| only == engine)
            && class >= self.minimum
            && (class != IsolationClass::SharedKernel
                || self.shared_kernel == SharedKernel::Accepted)
    }
}

/// An engine and its probe result.
#[derive(Debug, Clone)]
pub struct ProbedEngine {
    pub engine: Arc<dyn SandboxEngine>,
    pub report: ProbeReport,
}

/// Chooses the strongest engine that the policy allows and that passed its probe. Among equals, the
/// first one wins.
pub fn choose(
    probed: &[ProbedEngine],
    policy: &SandboxPolicy,
) -> Result<ProbedEngine, SandboxError> {
    let fit = probed.iter().filter(|candidate| {
        candidate.report.faults().is_empty()
            && policy.allows(candidate.report.engine, candidate.report.class)
    });
    // `max_by_key` returns the last of equal elements, so iterate in reverse.
    fit.rev().max_by_key(|candidate| candidate.report.class).cloned().ok_or_else(|| {
        let found: Vec<String> = probed
            .iter()
            .map(|candidate| {
                let (engine, class) = (candidate.report.engine, candidate.report.class);
                let faults: Vec<String> =
                    candidate.report.faults().iter().map(ToString::to_string).collect();
                match faults.is_empty() {
                    true => format!("{engine} is {class}"),
                    false => format!("{engine} fails {}", faults.join(", ")),
                }
            })
            .collect();
        SandboxError::TooWeak {
            minimum: policy.minimum,
            found: match found.is_empty() {
                true => "no engine works on this host".to_owned(),
                false => found.join("; "),
            },
        }
    })
}

/// Runs programs, each in its own sandbox.
#[derive(Debug, Clone)]
pub struct SandboxRunner {
    engine: Arc<dyn SandboxEngine>,
    self_tests: Vec<SelfTest>,
    pool: SandboxPool,
    owner: PoolOwner,
}

/// Who ends the idle sandboxes of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolOwner {
    User,
    RunnerCache,
}

impl SandboxRunner {
    /// Uses the chosen engine. Engines that start quickly get no pool.
    pub fn new(chosen: ProbedEngine, options: PoolOptions) -> Self {
        let idle = if chosen.engine.is_worth_pooling() { options.idle } else { 0 };
        let pool = SandboxPool::new(Arc::clone(&chosen.engine), PoolOptions { idle, ..options });
        let (engine, self_tests) = (chosen.engine, chosen.report.self_tests);
        Self { engine, self_tests, pool, owner: PoolOwner::User }
    }

    /// The same runner for a user who must not end its idle sandboxes.
    pub(crate) fn shared(&self) -> Self {
        Self { owner: PoolOwner::RunnerCache, ..self.clone() }
    }

    pub fn engine(&self) -> &Arc<dyn SandboxEngine> {
        &self.engine
    }

    /// Starts filling the pool for a spec that will be requested soon.
    pub fn prewarm(&self, spec: &SandboxSpec) {
        self.pool.prewarm(spec);
    }

    /// Number of idle sandboxes for this spec.
    pub fn idle_count(&self, spec: &SandboxSpec) -> usize {
        self.pool.idle_count(spec)
    }

    /// Returns a fresh sandbox.
    pub async fn lease(
        &self,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<SandboxLease, SandboxError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.pool.take(spec, labels).await {
                Ok(pooled) => return Ok(self.make_lease(pooled, spec)),
                Err(error) if error.is_retryable() && tries < MAX_ATTEMPTS => {
                    tracing::warn!(%error, tries, "a sandbox did not start; trying another");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs one program in its own sandbox. Retries in another sandbox only if the program did not
    /// run at all.
    #[tracing::instrument(target = "moothall::run", name = "sandbox_execution", skip_all, fields(engine = %self.engine.name()))]
    pub async fn execute(
        &self,
        labels: &SandboxLabels,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        mut listener: Option<&mut dyn OutputListener>,
    ) -> Result<LeaseOutcome, SandboxError> {
        let spec = SandboxSpec { image: request.image.clone(), limits: request.limits };
        let mut tries = 0;
        loop {
            tries += 1;
            let lease = self.lease(&spec, labels).await?;
            tracing::info!(target: "moothall::run", sandbox = lease.name(), "sandbox execution started");
            let listener =
                listener.as_mut().map(|listener| &mut **listener as &mut dyn OutputListener);
            match lease.execute(request, inputs, listener).await {
                Err(error) if error.is_retryable() && tries < MAX_ATTEMPTS => {
                    tracing::warn!(%error, tries, "a sandbox was lost; trying another");
                }
                other => return other,
            }
        }
    }

    /// Ends all idle sandboxes, unless other users share them.
    pub async fn shut_down(&self) {
        if self.owner == PoolOwner::User {
            self.pool.drain().await;
        }
    }

    fn make_lease(&self, pooled: PooledSandbox, spec: &SandboxSpec) -> SandboxLease {
        let attestation =
            attestation(self.engine.as_ref(), &pooled.sandbox, spec, self.self_tests.clone());
        SandboxLease::new(pooled.sandbox, spec.clone(), attestation, Some(pooled.share))
    }
}

#[cfg(test)]
#[path = "sandbox_runner_tests.rs"]
mod tests;
