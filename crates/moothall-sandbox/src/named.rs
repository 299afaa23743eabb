//! Sandboxes that somebody comes back to: by name, made where there is none, and at rest while
//! nobody needs them.
//!
//! A sandbox at rest is a few files: its `/workspace` was taken out and the sandbox ended. Coming
//! back puts the files into a fresh one. Its memory is not kept: a used machine is never saved, and
//! whoever comes back replays what it had in mind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::RunId;
use moothall_core::sandbox::{GuestPath, Labels};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::lease::Lease;
use crate::{SandboxError, Sandboxes, Spec};

/// Sandboxes by name. A name belongs to a run, so two runs never share one.
#[derive(Debug)]
pub struct NamedSandboxes {
    sandboxes: Sandboxes,
    slots: Mutex<BTreeMap<Name, Arc<AsyncMutex<Slot>>>>,
}

/// The run and the name that it gave.
type Name = (RunId, String);

#[derive(Debug, Default)]
enum Slot {
    /// Nobody came yet.
    #[default]
    Empty,
    /// There is one.
    Awake(Box<Lease>),
    /// There was one; this is what stood in it.
    Resting(BTreeMap<GuestPath, Vec<u8>>),
}

/// A named sandbox in someone's hands; nobody else has it meanwhile.
#[derive(Debug)]
pub struct Visit {
    slot: OwnedMutexGuard<Slot>,
}

impl Visit {
    /// The sandbox. `None` only after [`Visit::give_up`].
    pub fn lease(&mut self) -> Option<&mut Lease> {
        match &mut *self.slot {
            Slot::Awake(lease) => Some(lease),
            Slot::Empty | Slot::Resting(_) => None,
        }
    }

    /// It is broken, or done: whoever comes next gets a new one.
    pub async fn give_up(mut self) {
        if let Slot::Awake(lease) = std::mem::take(&mut *self.slot) {
            lease.end().await;
        }
    }
}

impl NamedSandboxes {
    /// No names yet.
    pub fn new(sandboxes: Sandboxes) -> Self {
        Self { sandboxes, slots: Mutex::default() }
    }

    /// The sandbox of this name, made where there is none. Waits while somebody else has it.
    pub async fn visit(
        &self,
        run: &RunId,
        name: &str,
        spec: &Spec,
        labels: &Labels,
    ) -> Result<Visit, SandboxError> {
        let mut slot = self.slot(run, name).lock_owned().await;
        // One that was left in the middle of a sentence would answer the last question.
        if matches!(&*slot, Slot::Awake(lease) if lease.is_broken())
            && let Slot::Awake(lease) = std::mem::take(&mut *slot)
        {
            lease.end().await;
        }
        if !matches!(*slot, Slot::Awake(_)) {
            let mut lease = self.sandboxes.lease(spec, labels).await?;
            if let Slot::Resting(files) = &*slot {
                lease.unpack(files).await?;
            }
            *slot = Slot::Awake(Box::new(lease));
        }
        Ok(Visit { slot })
    }

    /// Ends the sandbox and keeps its files, so that it costs nothing until somebody comes back. It
    /// is fine if there is none. One that cannot be emptied is given up.
    pub async fn rest(&self, run: &RunId, name: &str) -> Result<(), SandboxError> {
        let mut slot = self.slot(run, name).lock_owned().await;
        let Slot::Awake(lease) = &mut *slot else { return Ok(()) };
        // It stays where it is until its files are out: whoever gives up on this has lost nothing.
        let files = lease.pack().await;
        let (rest, packed) = match files {
            Ok(files) => (Slot::Resting(files), Ok(())),
            Err(error) => (Slot::Empty, Err(error)),
        };
        if let Slot::Awake(lease) = std::mem::replace(&mut *slot, rest) {
            lease.end().await;
        }
        packed
    }

    /// Ends the sandboxes of a run and forgets their names.
    pub async fn forget(&self, run: &RunId) {
        let of_run: Vec<_> = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let names: Vec<_> = slots.keys().filter(|(of, _)| of == run).cloned().collect();
            names.into_iter().filter_map(|key| slots.remove(&key)).collect()
        };
        for slot in of_run {
            if let Slot::Awake(lease) = std::mem::take(&mut *slot.lock().await) {
                lease.end().await;
            }
        }
    }

    fn slot(&self, run: &RunId, name: &str) -> Arc<AsyncMutex<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry((run.clone(), name.to_owned())).or_default())
    }
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
