//! The budget of a run whose calls are made by several machines. All reservations are decided in
//! one place.
//!
//! Invariant: while providers respect the limits of requests, settled and reserved amounts together
//! never exceed the budget. The reservation of a worker that died counts as spent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::money::{MicroUsd, SpendTotals};

/// The limits of a run. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The cost limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<MicroUsd>,
    /// The token limit, prompts and answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// A request to reserve part of the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReserveRequest {
    /// The batch of calls it is for, named after its first effect.
    pub wave: String,
    /// Different for every attempt to make the calls, so a worker that died during a call is
    /// detected.
    pub attempt: String,
    /// The maximum cost of the calls.
    pub usd: MicroUsd,
    /// The maximum token usage of the calls.
    pub tokens: u64,
    /// The budget of the run.
    pub budget: Budget,
}

/// How a reservation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The actual usage of the calls.
    Settle {
        /// The batch of calls.
        wave: String,
        /// The attempt that made them.
        attempt: String,
        /// The usage.
        used: SpendTotals,
    },
    /// All results exist, but another attempt that had reserved for them died before it reported
    /// their usage.
    Forfeit {
        /// The batch of calls.
        wave: String,
        /// The attempt that detected it.
        attempt: String,
    },
}

/// The decision about a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveDecision {
    /// The amount is reserved.
    Granted,
    /// It would fit once other reservations are settled; try again later.
    Wait,
    /// It can never fit; the text says why.
    Refused(String),
}

/// The budget account of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetAccount {
    spent: SpendTotals,
    /// By batch.
    reserved: BTreeMap<String, AccountReservation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountReservation {
    attempt: String,
    usd: MicroUsd,
    tokens: u64,
}

impl BudgetAccount {
    /// Reserves the amount. If another attempt holds a reservation for the same batch, that attempt
    /// died and its reservation counts as spent.
    pub fn reserve(&mut self, request: &ReserveRequest) -> ReserveDecision {
        let ReserveRequest { wave, attempt, usd, tokens, budget } = request;
        match self.reserved.get(wave) {
            // A repeated request: the first reply was lost.
            Some(reserved) if reserved.attempt == *attempt => return ReserveDecision::Granted,
            Some(_) => self.forfeit(wave),
            None => {}
        }
        let fits = |used: SpendTotals| {
            budget.usd.is_none_or(|cap| used.usd.saturating_add(*usd) <= cap)
                && budget.tokens.is_none_or(|cap| used.tokens.saturating_add(*tokens) <= cap)
        };
        if !fits(self.spent) {
            return ReserveDecision::Refused(refusal(&self.spent, request));
        }
        if !fits(self.with_reservations()) {
            return ReserveDecision::Wait;
        }
        let reserved = AccountReservation { attempt: attempt.clone(), usd: *usd, tokens: *tokens };
        self.reserved.insert(wave.clone(), reserved);
        ReserveDecision::Granted
    }

    /// Settles or forfeits a reservation. Idempotent.
    pub fn settle(&mut self, settlement: &Settlement) {
        match settlement {
            Settlement::Settle { wave, attempt, used } => {
                if self.reserved.get(wave).is_some_and(|reserved| reserved.attempt == *attempt) {
                    self.reserved.remove(wave);
                    self.count(used);
                }
            }
            Settlement::Forfeit { wave, attempt } => {
                if self.reserved.get(wave).is_some_and(|reserved| reserved.attempt != *attempt) {
                    self.forfeit(wave);
                }
            }
        }
    }

    fn count(&mut self, used: &SpendTotals) {
        let spent = &mut self.spent;
        spent.usd = spent.usd.saturating_add(used.usd);
        spent.tokens = spent.tokens.saturating_add(used.tokens);
        spent.uncertain_usd = spent.uncertain_usd.saturating_add(used.uncertain_usd);
        spent.unpriced_calls = spent.unpriced_calls.saturating_add(used.unpriced_calls);
    }

    fn forfeit(&mut self, wave: &str) {
        if let Some(AccountReservation { usd, tokens, .. }) = self.reserved.remove(wave) {
            self.spent.count_uncertain(Some(usd), tokens);
        }
    }

    /// The spending so far, with all reservations counted in full.
    pub fn with_reservations(&self) -> SpendTotals {
        let mut spent = self.spent;
        for AccountReservation { usd, tokens, .. } in self.reserved.values() {
            spent.count_uncertain(Some(*usd), *tokens);
        }
        spent
    }
}

fn refusal(spent: &SpendTotals, request: &ReserveRequest) -> String {
    match (request.budget.usd, request.budget.tokens) {
        (Some(cap), _) if spent.usd.saturating_add(request.usd) > cap => {
            let left = cap.saturating_sub(spent.usd);
            let needed = request.usd;
            format!("the calls may cost {needed}, but only {left} of the run's {cap} are left")
        }
        (_, cap) => {
            let cap = cap.unwrap_or_default();
            let (needed, left) = (request.tokens, cap.saturating_sub(spent.tokens));
            format!(
                "the calls may use {needed} tokens, but only {left} of the run's {cap} are left"
            )
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
