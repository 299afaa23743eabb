//! Concurrency slots shared fairly by runs: a free slot goes to the runs in turn, so a run with
//! many waiting calls does not delay a run with few. A semaphore would serve calls in order of
//! arrival.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::ledger::RunKey;

/// Cheap to clone; clones share the slots.
#[derive(Debug, Clone)]
pub(crate) struct FairSlots(Arc<Mutex<SlotState>>);

#[derive(Debug)]
struct SlotState {
    width: u32,
    in_use: u32,
    waiting: BTreeMap<RunKey, VecDeque<oneshot::Sender<FairSlot>>>,
    /// Runs with waiting calls, in the order in which they get the next slots.
    turns: VecDeque<RunKey>,
}

/// A slot in use, freed when dropped.
#[derive(Debug)]
pub(crate) struct FairSlot {
    slots: Option<FairSlots>,
}

impl FairSlots {
    pub(crate) fn new(width: u32) -> Self {
        let (waiting, turns) = (BTreeMap::new(), VecDeque::new());
        Self(Arc::new(Mutex::new(SlotState { width, in_use: 0, waiting, turns })))
    }

    /// Waits for a slot.
    pub(crate) async fn acquire(&self, run: RunKey) -> FairSlot {
        let receiver = {
            let mut state = self.lock();
            if state.in_use < state.width && state.turns.is_empty() {
                state.in_use += 1;
                return self.slot();
            }
            let (sender, receiver) = oneshot::channel();
            let queue = state.waiting.entry(run).or_default();
            let is_first = queue.is_empty();
            queue.push_back(sender);
            if is_first {
                state.turns.push_back(run);
            }
            receiver
        };
        match receiver.await {
            Ok(slot) => slot,
            // Senders are only dropped after sending.
            Err(_) => FairSlot { slots: None },
        }
    }

    /// Callers that wait for a slot.
    pub(crate) fn queued(&self) -> usize {
        self.lock().waiting.values().flatten().filter(|sender| !sender.is_closed()).count()
    }

    /// Changes the number of slots. Slots in use above the number are removed when they are freed.
    pub(crate) fn set_width(&self, width: u32) {
        let mut state = self.lock();
        state.width = width;
        self.hand_out(&mut state);
    }

    fn slot(&self) -> FairSlot {
        FairSlot { slots: Some(self.clone()) }
    }

    fn hand_out(&self, state: &mut SlotState) {
        while state.in_use < state.width
            && let Some(run) = state.turns.pop_front()
        {
            let Some(queue) = state.waiting.get_mut(&run) else { continue };
            let sender = queue.pop_front();
            if queue.is_empty() {
                state.waiting.remove(&run);
            } else {
                state.turns.push_back(run);
            }
            if let Some(sender) = sender {
                match sender.send(self.slot()) {
                    Ok(()) => state.in_use += 1,
                    // The caller was cancelled. The slot was not counted, so it must not be freed.
                    Err(mut unused) => unused.slots = None,
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FairSlot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            let mut state = slots.lock();
            state.in_use = state.in_use.saturating_sub(1);
            slots.hand_out(&mut state);
        }
    }
}

#[cfg(test)]
#[path = "fair_slots_tests.rs"]
mod tests;
