//! The budget of one run: reserve the worst case, then settle for what it really was.
//!
//! Invariants: while providers keep to the limits of a request, spent + reserved never exceeds the
//! cap; spent never shrinks. A call that can
//! never fit is refused at once; one that only others' reservations hold back waits, in the order
//! of asking.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use moothall_core::MicroUsd;
use moothall_core::model::{FailureKind, ModelFailure};
pub use moothall_core::money::Spent;
pub use moothall_core::purse::Budget;
use tokio::sync::Notify;

/// What a call may use at most, or did use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Money; absent where the price is unknown.
    pub usd: Option<MicroUsd>,
    /// Tokens.
    pub tokens: u64,
}

/// The one ledger of a run.
#[derive(Debug)]
pub struct Ledger {
    budget: Budget,
    state: Mutex<State>,
    changed: Notify,
    /// Held while waiting for room: a fair lock, so that a large call is not starved by a stream of
    /// small ones.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    spent: Spent,
    reserved_usd: MicroUsd,
    reserved_tokens: u64,
}

impl Ledger {
    /// A ledger with nothing spent.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            state: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// The ledger of a run that goes on: what was spent before counts against the budget.
    pub fn resume(budget: Budget, spent: Spent) -> Self {
        let ledger = Self::new(budget);
        ledger.state().spent = spent;
        ledger
    }

    /// A ledger without caps, which only counts.
    pub fn unlimited() -> Self {
        Self::new(Budget::default())
    }

    /// The totals so far.
    pub fn spent(&self) -> Spent {
        self.state().spent
    }

    /// The totals as they would be if everything under way were billed in full. Whoever keeps this
    /// keeps enough for the case that the process dies before the bills arrive.
    pub fn spent_at_most(&self) -> Spent {
        let state = self.state();
        let mut spent = state.spent;
        if state.reserved_tokens > 0 || state.reserved_usd > MicroUsd::ZERO {
            spent.count_uncertain(Some(state.reserved_usd), state.reserved_tokens);
        }
        spent
    }

    /// Reserves room for a call. Dropping the reservation gives the room back.
    pub async fn reserve(&self, worst: Amount) -> Result<Reservation<'_>, ModelFailure> {
        if self.budget.usd.is_some() && worst.usd.is_none() {
            return Err(ModelFailure::new(
                FailureKind::PriceUnknown,
                "the run has a budget in dollars, but the price of this model is unknown",
            ));
        }
        // Without waiting first: what cannot fit now can never fit, because spent only grows.
        self.refuse_if_hopeless(worst)?;
        if self.budget == Budget::default() {
            return Ok(self.take(worst));
        }
        let _turn = self.turn.lock().await;
        loop {
            let changed = self.changed.notified();
            self.refuse_if_hopeless(worst)?;
            if self.fits_beside_others(worst) {
                return Ok(self.take(worst));
            }
            changed.await;
        }
    }

    fn take(&self, worst: Amount) -> Reservation<'_> {
        let mut state = self.state();
        state.reserved_usd = state.reserved_usd.saturating_add(worst.usd.unwrap_or_default());
        state.reserved_tokens = state.reserved_tokens.saturating_add(worst.tokens);
        Reservation { ledger: self, worst, settled: None, sent: AtomicBool::new(false) }
    }

    fn fits_beside_others(&self, worst: Amount) -> bool {
        let state = self.state();
        let usd = state
            .spent
            .usd
            .saturating_add(state.reserved_usd)
            .saturating_add(worst.usd.unwrap_or_default());
        let tokens =
            state.spent.tokens.saturating_add(state.reserved_tokens).saturating_add(worst.tokens);
        self.budget.usd.is_none_or(|cap| usd <= cap)
            && self.budget.tokens.is_none_or(|cap| tokens <= cap)
    }

    fn refuse_if_hopeless(&self, worst: Amount) -> Result<(), ModelFailure> {
        let spent = self.state().spent;
        if let (Some(cap), Some(needed)) = (self.budget.usd, worst.usd)
            && spent.usd.saturating_add(needed) > cap
        {
            let left = cap.saturating_sub(spent.usd);
            let detail =
                format!("the call may cost {needed}, but only {left} of the run's {cap} are left");
            return Err(ModelFailure::new(FailureKind::OverBudget, detail));
        }
        if let Some(cap) = self.budget.tokens
            && spent.tokens.saturating_add(worst.tokens) > cap
        {
            let (needed, left) = (worst.tokens, cap.saturating_sub(spent.tokens));
            let detail = format!(
                "the call may use {needed} tokens, but only {left} of the run's {cap} are left"
            );
            return Err(ModelFailure::new(FailureKind::OverBudget, detail));
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a few assignments, so a panic elsewhere cannot leave them half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room that one try holds.
///
/// Dropping it gives the room back, unless the request was sent: then the provider may bill it, and
/// the whole reservation counts as spent. So a call that is cancelled on its way costs what it may
/// have cost.
#[derive(Debug)]
#[must_use = "a dropped reservation gives its room back"]
pub struct Reservation<'a> {
    ledger: &'a Ledger,
    worst: Amount,
    settled: Option<Settlement>,
    sent: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
enum Settlement {
    Used(Amount),
    Unknown,
    Free,
}

impl Reservation<'_> {
    /// The request is about to leave: from here on nobody knows whether it is billed.
    pub fn mark_sent(&self) {
        self.sent.store(true, Ordering::Relaxed);
    }

    /// The try used this much. It can be more than was reserved only if the provider ignored the
    /// limits of the request; it is counted all the same.
    pub fn settle(mut self, used: Amount) {
        self.settled = Some(Settlement::Used(used));
    }

    /// Nobody knows what the provider bills: the whole reservation counts as spent.
    pub fn settle_unknown(mut self) {
        self.settled = Some(Settlement::Unknown);
    }

    /// The provider refused the request or never saw it: nothing is billed.
    pub fn release(mut self) {
        self.settled = Some(Settlement::Free);
    }

    /// What was reserved.
    pub fn worst(&self) -> Amount {
        self.worst
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let unsaid =
            if self.sent.load(Ordering::Relaxed) { Settlement::Unknown } else { Settlement::Free };
        let mut state = self.ledger.state();
        state.reserved_usd = state.reserved_usd.saturating_sub(self.worst.usd.unwrap_or_default());
        state.reserved_tokens = state.reserved_tokens.saturating_sub(self.worst.tokens);
        match self.settled.unwrap_or(unsaid) {
            Settlement::Free => {}
            Settlement::Used(used) => state.spent.count(used.usd, used.tokens),
            Settlement::Unknown => {
                state.spent.count_uncertain(self.worst.usd, self.worst.tokens);
            }
        }
        drop(state);
        self.ledger.changed.notify_waiters();
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
