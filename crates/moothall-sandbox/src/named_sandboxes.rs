//! Named sandboxes that a run can return to. They are created on demand and suspended while not
//! needed.
//!
//! Suspending a sandbox saves the files in its `/workspace` and ends it. Resuming writes the files
//! into a fresh sandbox. Memory is not kept: used machines are never saved, so callers must replay
//! their in-memory state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::RunId;
use moothall_core::sandbox::{GuestPath, SandboxLabels};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::lease::SandboxLease;
use crate::{SandboxError, SandboxRunner, SandboxSpec};

/// Sandboxes by name. Names are scoped to a run, so two runs never share a sandbox.
#[derive(Debug)]
pub struct NamedSandboxes {
    sandboxes: SandboxRunner,
    slots: Mutex<BTreeMap<Name, Arc<AsyncMutex<NamedSandboxSlot>>>>,
}

/// The run and the name within it.
type Name = (RunId, String);

#[derive(Debug, Default)]
enum NamedSandboxSlot {
    /// Not created yet.
    #[default]
    Empty,
    /// Running.
    Running(Box<SandboxLease>),
    /// Suspended, with the files of its workspace.
    Suspended(BTreeMap<GuestPath, Vec<u8>>),
}

/// Exclusive access to a named sandbox.
#[derive(Debug)]
pub struct NamedSandboxGuard {
    slot: OwnedMutexGuard<NamedSandboxSlot>,
}

impl NamedSandboxGuard {
    /// The sandbox. `None` only after [`NamedSandboxGuard::discard`].
    pub fn lease(&mut self) -> Option<&mut SandboxLease> {
        match &mut *self.slot {
            NamedSandboxSlot::Running(lease) => Some(lease),
            NamedSandboxSlot::Empty | NamedSandboxSlot::Suspended(_) => None,
        }
    }

    /// Ends the sandbox because it is broken or done. The next visit gets a new one.
    pub async fn discard(mut self) {
        if let NamedSandboxSlot::Running(lease) = std::mem::take(&mut *self.slot) {
            lease.end().await;
        }
    }
}

impl NamedSandboxes {
    pub fn new(sandboxes: SandboxRunner) -> Self {
        Self { sandboxes, slots: Mutex::default() }
    }

    /// Returns the sandbox with this name and creates or resumes it if needed. Waits while another
    /// task uses it.
    pub async fn acquire(
        &self,
        run: &RunId,
        name: &str,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<NamedSandboxGuard, SandboxError> {
        let mut slot = self.slot(run, name).lock_owned().await;
        // If the last exchange was interrupted, the next reply would belong to the previous
        // request.
        if matches!(&*slot, NamedSandboxSlot::Running(lease) if lease.is_broken())
            && let NamedSandboxSlot::Running(lease) = std::mem::take(&mut *slot)
        {
            lease.end().await;
        }
        if !matches!(*slot, NamedSandboxSlot::Running(_)) {
            let mut lease = self.sandboxes.lease(spec, labels).await?;
            if let NamedSandboxSlot::Suspended(files) = &*slot {
                lease.unpack(files).await?;
            }
            *slot = NamedSandboxSlot::Running(Box::new(lease));
        }
        Ok(NamedSandboxGuard { slot })
    }

    /// Suspends the sandbox: ends it and keeps its files, so it uses no resources. Does
    /// nothing if it is not running. If its files cannot be read, they are lost and the next visit
    /// gets a new sandbox.
    pub async fn suspend(&self, run: &RunId, name: &str) -> Result<(), SandboxError> {
        let mut slot = self.slot(run, name).lock_owned().await;
        let NamedSandboxSlot::Running(lease) = &mut *slot else { return Ok(()) };
        // The slot changes only after the files are saved, so cancelling this future loses nothing.
        let files = lease.pack().await;
        let (next, packed) = match files {
            Ok(files) => (NamedSandboxSlot::Suspended(files), Ok(())),
            Err(error) => (NamedSandboxSlot::Empty, Err(error)),
        };
        if let NamedSandboxSlot::Running(lease) = std::mem::replace(&mut *slot, next) {
            lease.end().await;
        }
        packed
    }

    /// Ends all sandboxes of a run and forgets their names.
    pub async fn end_run(&self, run: &RunId) {
        let of_run: Vec<_> = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let names: Vec<_> = slots.keys().filter(|(of, _)| of == run).cloned().collect();
            names.into_iter().filter_map(|key| slots.remove(&key)).collect()
        };
        for slot in of_run {
            if let NamedSandboxSlot::Running(lease) = std::mem::take(&mut *slot.lock().await) {
                lease.end().await;
            }
        }
    }

    fn slot(&self, run: &RunId, name: &str) -> Arc<AsyncMutex<NamedSandboxSlot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry((run.clone(), name.to_owned())).or_default())
    }
}

#[cfg(test)]
#[path = "named_sandboxes_tests.rs"]
mod tests;
