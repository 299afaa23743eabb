//! What all runs, requests and tools of this process share, so that limits apply to the process and
//! not to each run. Contexts are created per request, so this is a static.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use moothall_models::ProviderConnections;
use moothall_sandbox::MemoryBudget;

static RESOURCES: LazyLock<ProcessResources> = LazyLock::new(ProcessResources::default);

#[derive(Debug, Default)]
struct ProcessResources {
    connections: ProviderConnections,
    /// By size in bytes, which the configuration of a request may set.
    memory: Mutex<BTreeMap<u64, MemoryBudget>>,
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
