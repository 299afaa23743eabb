//! What all runs, requests and tools of this process share, so that limits apply to the process and
//! not to each run. Contexts are created per request, so this is a static.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use moothall_models::{KeySupply, ProviderConnections};
use moothall_sandbox::{MemoryBudget, RunnerCache};
use tokio::runtime::Handle;

/// Set only in processes that serve requests: `serve`, `worker` and the processes of `mcp`.
static KEPT_SANDBOXES: OnceLock<KeptSandboxes> = OnceLock::new();

static RESOURCES: LazyLock<ProcessResources> = LazyLock::new(ProcessResources::default);

#[derive(Debug, Default)]
struct ProcessResources {
    connections: ProviderConnections,
    /// By size in bytes, which the configuration of a request may set.
    memory: Mutex<BTreeMap<u64, MemoryBudget>>,
    /// Keys from commands and the keychain, by what identifies their source. A key that the
    /// provider rejects is fetched again.
    keys: Mutex<BTreeMap<String, KeySupply>>,
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

/// The key from the source with this id.
pub(crate) fn key_supply(id: String, create: impl FnOnce() -> KeySupply) -> KeySupply {
    let mut keys = RESOURCES.keys.lock().unwrap_or_else(PoisonError::into_inner);
    keys.entry(id).or_insert_with(create).clone()
}

/// Sandboxes that stay ready between requests.
#[derive(Debug)]
pub(crate) struct KeptSandboxes {
    pub(crate) runners: RunnerCache,
    /// Idle sandboxes need a runtime that lives as long as they do.
    pub(crate) runtime: Handle,
}

/// Keeps the sandboxes of this process ready between requests, on this runtime.
pub(crate) fn keep_sandboxes(runtime: Handle) {
    let _ = KEPT_SANDBOXES.set(KeptSandboxes { runners: RunnerCache::default(), runtime });
}

/// The kept sandboxes; `None` in a process that executes one command.
pub(crate) fn kept_sandboxes() -> Option<&'static KeptSandboxes> {
    KEPT_SANDBOXES.get()
}

/// Ends the kept sandboxes.
pub(crate) async fn end_kept_sandboxes() {
    if let Some(kept) = kept_sandboxes() {
        kept.runners.shut_down().await;
    }
}
