//! The budget of one run: reserves the worst case, then settles the actual cost.
//!
//! Invariants: as long as providers respect a request's limits, spent + reserved never exceeds the
//! cap; spent never decreases. A call that can never fit is refused immediately. One that does not
//! fit only because of other reservations waits, first come, first served.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use moothall_core::budget::Budget;
use moothall_core::model::{FailureKind, ModelFailure};
pub use moothall_core::money::SpendTotals;
use moothall_core::{MicroUsd, RunId};
use tokio::sync::{Notify, watch};

/// Money and tokens that a call used or may use at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCost {
    /// `None` if the price is unknown.
    pub usd: Option<MicroUsd>,
    pub tokens: u64,
}

/// Identifies the run of a call, for the fair distribution of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunKey(u64);

impl RunKey {
    /// A key that no other run has.
    fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The same key for the same name.
    pub(crate) fn of(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        // The upper half, so that it never equals a counter.
        Self(hasher.finish() | 1 << 63)
    }
}

/// The ledger of a run. There is one per run, or per batch of a run on a cluster.
#[derive(Debug)]
pub struct RunLedger {
    run: RunKey,
    budget: Budget,
    state: Mutex<LedgerState>,
    changed: Notify,
    /// Held while waiting for budget. A fair lock, so that small calls do not starve a large one.
    turn: tokio::sync::Mutex<()>,
    outage_waits_ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct LedgerState {
    spent: SpendTotals,
    reserved_usd: MicroUsd,
    reserved_tokens: u64,
}

impl RunLedger {
    pub fn new(budget: Budget) -> Self {
        Self {
            run: RunKey::unique(),
            budget,
            state: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            outage_waits_ended: watch::Sender::new(false),
        }
    }

    /// Makes calls that wait for the end of an outage fail now, because the run pauses.
    pub fn end_outage_waits(&self) {
        self.outage_waits_ended.send_replace(true);
    }

    pub(crate) fn has_ended_outage_waits(&self) -> bool {
        *self.outage_waits_ended.borrow()
    }

    /// Completes after [`RunLedger::end_outage_waits`].
    pub(crate) async fn outage_waits_ended(&self) {
        // The sender lives as long as this ledger, so this cannot fail.
        let _ = self.outage_waits_ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Sets the run, if it has several ledgers.
    #[must_use]
    pub fn of_run(self, run_id: &RunId) -> Self {
        Self { run: RunKey::of(run_id.as_str()), ..self }
    }

    /// The ledger of a resumed run. `spent` counts against the budget.
    pub fn resume(budget: Budget, spent: SpendTotals) -> Self {
        let ledger = Self::new(budget);
        ledger.state().spent = spent;
        ledger
    }

    /// A ledger without caps, which only counts.
    pub fn unlimited() -> Self {
        Self::new(Budget::default())
    }

    pub fn spent(&self) -> SpendTotals {
        self.state().spent
    }

    /// The totals if all calls in progress were billed in full. Storing this covers the case that
    /// the process dies before the actual costs are known.
    pub fn spent_at_most(&self) -> SpendTotals {
        let state = self.state();
        let mut spent = state.spent;
        if state.reserved_tokens > 0 || state.reserved_usd > MicroUsd::ZERO {
            spent.count_uncertain(Some(state.reserved_usd), state.reserved_tokens);
        }
        spent
    }

    /// Reserves budget for a call, waiting if necessary. Dropping an unsent reservation releases
    /// it.
    pub async fn reserve(
        &self,
        worst_case: CallCost,
    ) -> Result<BudgetReservation<'_>, ModelFailure> {
        if self.budget.usd.is_some() && worst_case.usd.is_none() {
            return Err(ModelFailure::new(
                FailureKind::PriceUnknown,
                "the run has a dollar budget, but the price of this model is unknown",
            ));
        }
        // Check before waiting: spent only grows, so what exceeds the cap now can never fit.
        self.check_can_ever_fit(worst_case)?;
        if self.budget == Budget::default() {
            return Ok(self.take(worst_case));
        }
        let _turn = self.turn.lock().await;
        loop {
            let changed = self.changed.notified();
            self.check_can_ever_fit(worst_case)?;
            if self.fits_with_reservations(worst_case) {
                return Ok(self.take(worst_case));
            }
            changed.await;
        }
    }

    fn take(&self, worst_case: CallCost) -> BudgetReservation<'_> {
        let mut state = self.state();
        state.reserved_usd = state.reserved_usd.saturating_add(worst_case.usd.unwrap_or_default());
        state.reserved_tokens = state.reserved_tokens.saturating_add(worst_case.tokens);
        let (bill_at_most, sent) = (worst_case, AtomicBool::new(false));
        BudgetReservation { ledger: self, worst_case, bill_at_most, settled: None, sent }
    }

    fn fits_with_reservations(&self, worst_case: CallCost) -> bool {
        let state = self.state();
        let usd = state
            .spent
            .usd
            .saturating_add(state.reserved_usd)
            .saturating_add(worst_case.usd.unwrap_or_default());
        let tokens = state
            .spent
            .tokens
            .saturating_add(state.reserved_tokens)
            .saturating_add(worst_case.tokens);
        self.budget.usd.is_none_or(|cap| usd <= cap)
            && self.budget.tokens.is_none_or(|cap| tokens <= cap)
    }

    fn check_can_ever_fit(&self, worst_case: CallCost) -> Result<(), ModelFailure> {
        let spent = self.state().spent;
        if let (Some(cap), Some(needed)) = (self.budget.usd, worst_case.usd)
            && spent.usd.saturating_add(needed) > cap
        {
            let left = cap.saturating_sub(spent.usd);
            let detail = format!(
                "the call may cost {needed}, but only {left} of the run's {cap} budget is left"
            );
            return Err(ModelFailure::new(FailureKind::OverBudget, detail));
        }
        if let Some(cap) = self.budget.tokens
            && spent.tokens.saturating_add(worst_case.tokens) > cap
        {
            let (needed, left) = (worst_case.tokens, cap.saturating_sub(spent.tokens));
            let detail = format!(
                "the call may use {needed} tokens, but only {left} of the run's {cap} are left"
            );
            return Err(ModelFailure::new(FailureKind::OverBudget, detail));
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        // Changes are a few assignments, so a panic elsewhere cannot leave them incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Budget reserved for one attempt.
///
/// Dropping it releases the budget, unless the request was sent: then the provider may bill it, and
/// the whole reservation counts as spent. A call cancelled in progress therefore counts with its
/// maximum cost.
#[derive(Debug)]
#[must_use = "dropping a reservation releases its budget"]
pub struct BudgetReservation<'a> {
    ledger: &'a RunLedger,
    worst_case: CallCost,
    /// Less than `worst_case` if it covers a more expensive fallback.
    bill_at_most: CallCost,
    settled: Option<ReservationOutcome>,
    sent: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
enum ReservationOutcome {
    Used(CallCost),
    Unknown,
    Free,
}

impl BudgetReservation<'_> {
    /// Completes when the run pauses.
    pub(crate) async fn run_pauses(&self) {
        self.ledger.outage_waits_ended().await;
    }

    /// The run that pays.
    pub(crate) fn run(&self) -> RunKey {
        self.ledger.run
    }

    /// Sets what the model of this attempt can cost at most. The reservation covers the most
    /// expensive model that may answer the call.
    pub(crate) fn with_bill_at_most(mut self, bill_at_most: CallCost) -> Self {
        self.bill_at_most = bill_at_most;
        self
    }

    /// What the provider can bill at most.
    pub(crate) fn bill_at_most(&self) -> CallCost {
        self.bill_at_most
    }

    /// Call this before sending the request. From then on it may be billed.
    pub fn mark_sent(&self) {
        self.sent.store(true, Ordering::Relaxed);
    }

    /// Settles the actual usage. It can exceed the reservation only if the provider ignored the
    /// request's limits, and is then counted in full.
    pub fn settle(mut self, used: CallCost) {
        self.settled = Some(ReservationOutcome::Used(used));
    }

    /// Counts the most that this attempt can cost as spent, because the actual cost is unknown.
    pub fn settle_unknown(mut self) {
        self.settled = Some(ReservationOutcome::Unknown);
    }

    /// Releases the reservation: the provider rejected or never received the request.
    pub fn release(mut self) {
        self.settled = Some(ReservationOutcome::Free);
    }

    /// The reserved amount.
    pub fn worst_case(&self) -> CallCost {
        self.worst_case
    }
}

impl Drop for BudgetReservation<'_> {
    fn drop(&mut self) {
        let default_settlement = if self.sent.load(Ordering::Relaxed) {
            ReservationOutcome::Unknown
        } else {
            ReservationOutcome::Free
        };
        let mut state = self.ledger.state();
        state.reserved_usd =
            state.reserved_usd.saturating_sub(self.worst_case.usd.unwrap_or_default());
        state.reserved_tokens = state.reserved_tokens.saturating_sub(self.worst_case.tokens);
        match self.settled.unwrap_or(default_settlement) {
            ReservationOutcome::Free => {}
            ReservationOutcome::Used(used) => state.spent.count(used.usd, used.tokens),
            ReservationOutcome::Unknown => {
                state.spent.count_uncertain(self.bill_at_most.usd, self.bill_at_most.tokens);
            }
        }
        drop(state);
        self.ledger.changed.notify_waiters();
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
