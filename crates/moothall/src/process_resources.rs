//! What all runs, requests and tools of this process share, so that limits apply to the process and
//! not to each run. Contexts are created per request, so this is a static.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use moothall_models::ProviderConnections;
use moothall_sandbox::{EngineName, MemoryBudget, PoolOptions, ProbedEngine, SandboxRunner};

static RESOURCES: LazyLock<ProcessResources> = LazyLock::new(ProcessResources::default);

#[derive(Debug, Default)]
struct ProcessResources {
    connections: ProviderConnections,
    /// By size in bytes, which the configuration of a request may set.
    memory: Mutex<BTreeMap<u64, MemoryBudget>>,
    keeps_sandboxes: AtomicBool,
    sandboxes: Mutex<BTreeMap<SandboxKey, SandboxRunner>>,
}

/// Programs share a pool if they run on the same engine with the same images and limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SandboxKey {
    pub(crate) engine: EngineName,
    pub(crate) images: PathBuf,
    pub(crate) memory_bytes: u64,
    pub(crate) idle: usize,
}

/// Connections and limits of model providers.
pub(crate) fn connections() -> ProviderConnections {
    RESOURCES.connections.clone()
}

/// Memory for sandboxes.
pub(crate) fn memory(bytes: u64) -> MemoryBudget {
    let mut budgets = RESOURCES.memory.lock().unwrap_or_else(PoisonError::into_inner);
    budgets.entry(bytes).or_insert_with(|| MemoryBudget::new(bytes)).clone()
}

/// Keeps pools of sandboxes filled between runs, for processes that serve many of them. The process
/// must call [`end_sandboxes`].
pub(crate) fn keep_sandboxes() {
    RESOURCES.keeps_sandboxes.store(true, Ordering::Relaxed);
}

/// Whether pools outlive the runs that use them.
pub(crate) fn keeps_sandboxes() -> bool {
    RESOURCES.keeps_sandboxes.load(Ordering::Relaxed)
}

/// The pool for programs: a shared one if this process keeps sandboxes, otherwise a new one.
pub(crate) fn sandboxes(key: SandboxKey, chosen: ProbedEngine) -> SandboxRunner {
    let options = PoolOptions { idle: key.idle, memory: memory(key.memory_bytes) };
    if !keeps_sandboxes() {
        return SandboxRunner::new(chosen, options);
    }
    let mut sandboxes = RESOURCES.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
    sandboxes.entry(key).or_insert_with(|| SandboxRunner::new(chosen, options)).clone()
}

/// Ends all idle sandboxes of kept pools.
pub(crate) async fn end_sandboxes() {
    let sandboxes = {
        let mut sandboxes = RESOURCES.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *sandboxes)
    };
    for runner in sandboxes.into_values() {
        runner.shut_down().await;
    }
}
