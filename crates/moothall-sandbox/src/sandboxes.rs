//! The sandboxes of this host behind one door: which engine, a pool, and a second try.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::sandbox::{ExecuteRequest, GuestPath, IsolationClass, Labels, SelfTest};

use crate::engine::attestation;
use crate::lease::{Executed, Lease};
use crate::pool::{Held, Pool, PoolOptions};
use crate::probe::ProbeReport;
use crate::{Engine, EngineName, Listener, SandboxError, Spec};

/// A failed lease is tried twice more, each time with a fresh sandbox.
const TRIES: u32 = 3;

/// What is demanded of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// This engine and no other; `None` chooses the strongest.
    pub engine: Option<EngineName>,
    /// Nothing weaker than this.
    pub minimum: IsolationClass,
    /// Whether a container on the host's own kernel will do. Never chosen unless said.
    pub shared_kernel: SharedKernel,
}

/// Whether the host's own kernel may be the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKernel {
    /// A person said so.
    Accepted,
    /// The usual.
    Refused,
}

impl Policy {
    /// Whether an engine of this name and class will do.
    pub fn allows(&self, engine: EngineName, class: IsolationClass) -> bool {
        self.engine.is_none_or(|wanted| wanted == engine)
            && class >= self.minimum
            && (class != IsolationClass::SharedKernel
                || self.shared_kernel == SharedKernel::Accepted)
    }
}

/// An engine and what was found out about it.
#[derive(Debug, Clone)]
pub struct ProbedEngine {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// What it is worth.
    pub report: ProbeReport,
}

/// The strongest engine that the policy allows and that holds. The order of two equally strong ones
/// is the order in which they are given.
pub fn choose(probed: &[ProbedEngine], policy: &Policy) -> Result<ProbedEngine, SandboxError> {
    let fit = probed.iter().filter(|candidate| {
        candidate.report.faults().is_empty()
            && policy.allows(candidate.report.engine, candidate.report.class)
    });
    // `max_by_key` gives the last of equals, so they are looked at from the end.
    fit.rev().max_by_key(|candidate| candidate.report.class).cloned().ok_or_else(|| {
        let found: Vec<String> = probed
            .iter()
            .map(|candidate| {
                let (engine, class) = (candidate.report.engine, candidate.report.class);
                let faults: Vec<String> =
                    candidate.report.faults().iter().map(ToString::to_string).collect();
                match faults.is_empty() {
                    true => format!("{engine} is {class}"),
                    false => format!("{engine} does not hold {}", faults.join(", ")),
                }
            })
            .collect();
        SandboxError::TooWeak {
            minimum: policy.minimum,
            found: match found.is_empty() {
                true => "no engine works here".to_owned(),
                false => found.join("; "),
            },
        }
    })
}

/// Executes programs, each in a sandbox of its own.
#[derive(Debug, Clone)]
pub struct Sandboxes {
    engine: Arc<dyn Engine>,
    self_tests: Vec<SelfTest>,
    pool: Pool,
}

impl Sandboxes {
    /// Sandboxes of an engine that was chosen. Engines that start quickly get no pool.
    pub fn new(chosen: ProbedEngine, options: PoolOptions) -> Self {
        let idle = if chosen.engine.is_worth_pooling() { options.idle } else { 0 };
        let pool = Pool::new(Arc::clone(&chosen.engine), PoolOptions { idle, ..options });
        Self { engine: chosen.engine, self_tests: chosen.report.self_tests, pool }
    }

    /// The engine that was chosen.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Starts filling the pool for this spec, for whoever knows what will be asked for.
    pub fn expect(&self, spec: &Spec) {
        self.pool.expect(spec);
    }

    /// Sandboxes that wait for this spec.
    pub fn waiting(&self, spec: &Spec) -> usize {
        self.pool.waiting(spec)
    }

    /// A sandbox that nobody used before.
    pub async fn lease(&self, spec: &Spec, labels: &Labels) -> Result<Lease, SandboxError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.pool.take(spec, labels).await {
                Ok(held) => return Ok(self.leased(held, spec)),
                Err(error) if error.is_retryable() && tries < TRIES => {
                    tracing::warn!(%error, tries, "a sandbox did not start; trying another");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs one program in a sandbox of its own. Tried again in another one only where it did not
    /// run at all.
    pub async fn execute(
        &self,
        labels: &Labels,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        mut listener: Option<&mut dyn Listener>,
    ) -> Result<Executed, SandboxError> {
        let spec = Spec { image: request.image.clone(), limits: request.limits };
        let mut tries = 0;
        loop {
            tries += 1;
            let lease = self.lease(&spec, labels).await?;
            tracing::info!(target: "moothall::run", sandbox = lease.name(), "sandbox execution started");
            let listener = listener.as_mut().map(|listener| &mut **listener as &mut dyn Listener);
            match lease.execute(request, inputs, listener).await {
                Err(error) if error.is_retryable() && tries < TRIES => {
                    tracing::warn!(%error, tries, "a sandbox was lost; trying another");
                }
                other => return other,
            }
        }
    }

    /// Ends every sandbox that waits.
    pub async fn shut_down(&self) {
        self.pool.drain().await;
    }

    fn leased(&self, held: Held, spec: &Spec) -> Lease {
        let attestation =
            attestation(self.engine.as_ref(), &held.vessel, spec, self.self_tests.clone());
        Lease::new(held.vessel, spec.clone(), attestation, Some(held.share))
    }
}

#[cfg(test)]
#[path = "sandboxes_tests.rs"]
mod tests;
