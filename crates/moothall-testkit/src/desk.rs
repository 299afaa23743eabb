//! What the server plans and remembers. One lock for both, so that the order of calls, of call
//! numbers and of the script is the same.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    behaviour::Behaviour,
    call::Call,
    stats::{Bill, Stats},
};

/// The plan and the records of one server.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    script: VecDeque<Arc<Behaviour>>,
    fallback: Choice,
    memory: Memory,
    calls: Vec<Arc<Call>>,
    stats: Stats,
}

/// How a behaviour is found for a call.
#[derive(Clone)]
pub(crate) enum Choice {
    Fixed(Arc<Behaviour>),
    Function(Arc<dyn Fn(&Call) -> Behaviour + Send + Sync>),
}

impl Choice {
    pub(crate) fn behaviour(self, call: &Call) -> Arc<Behaviour> {
        match self {
            Self::Fixed(behaviour) => behaviour,
            Self::Function(function) => Arc::new(function(call)),
        }
    }
}

impl Default for Choice {
    fn default() -> Self {
        Self::Fixed(Arc::default())
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(behaviour) => formatter.debug_tuple("Fixed").field(behaviour).finish(),
            Self::Function(_) => formatter.debug_tuple("Function").finish_non_exhaustive(),
        }
    }
}

/// How much is remembered of each call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Memory {
    #[default]
    Everything,
    Totals,
}

impl Desk {
    pub(crate) fn extend_script(&self, behaviours: impl Iterator<Item = Behaviour>) {
        self.lock().script.extend(behaviours.map(Arc::new));
    }

    pub(crate) fn script_length(&self) -> usize {
        self.lock().script.len()
    }

    pub(crate) fn set_fallback(&self, choice: Choice) {
        self.lock().fallback = choice;
    }

    pub(crate) fn keep_only_totals(&self) {
        let mut inner = self.lock();
        inner.memory = Memory::Totals;
        inner.calls = Vec::new();
        inner.stats.bills = Vec::new();
    }

    pub(crate) fn calls(&self) -> Vec<Arc<Call>> {
        self.lock().calls.clone()
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.lock().stats.clone();
        stats.bills.sort_unstable_by_key(|bill| bill.call);
        stats
    }

    /// Counts a request that is no call.
    pub(crate) fn reject(&self) {
        self.lock().stats.rejected += 1;
    }

    /// Numbers and records a call, and says how its behaviour is found. The function of a
    /// [`Choice`] runs outside the lock.
    pub(crate) fn open(&self, mut call: Call) -> (Turn<'_>, Choice) {
        let mut inner = self.lock();
        call.number = inner.stats.received;
        let call = Arc::new(call);
        inner.stats.received += 1;
        inner.stats.in_flight += 1;
        inner.stats.max_concurrent = inner.stats.max_concurrent.max(inner.stats.in_flight);
        if inner.memory == Memory::Everything {
            inner.calls.push(Arc::clone(&call));
        }
        let choice = match inner.script.pop_front() {
            Some(behaviour) => Choice::Fixed(behaviour),
            None => inner.fallback.clone(),
        };
        drop(inner);
        (Turn { desk: self, call, ended: false }, choice)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete before anything could panic, so a poisoned lock still guards
        // sound numbers.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call being treated. Dropped before [`Turn::end`], it counts as abandoned.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    desk: &'a Desk,
    pub(crate) call: Arc<Call>,
    ended: bool,
}

impl Turn<'_> {
    /// The answer begins.
    pub(crate) fn bill(&self, bill: Bill) {
        let mut inner = self.desk.lock();
        inner.stats.billed = inner.stats.billed.plus(bill.usage);
        if inner.memory == Memory::Everything {
            inner.stats.bills.push(bill);
        }
    }

    /// The last bytes are about to leave. Not after them: by then the client may have made its next
    /// call, which would look like one too many.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            let mut inner = self.desk.lock();
            inner.stats.in_flight -= 1;
            inner.stats.answered += 1;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let mut inner = self.desk.lock();
            inner.stats.in_flight -= 1;
            inner.stats.abandoned += 1;
        }
    }
}
