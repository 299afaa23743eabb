//! What a budget allows, decided in one place for all workers of a run.
//!
//! Invariant: while providers keep to the limits of requests, what was settled and what is reserved
//! never exceed the budget together. A reservation whose worker died counts as spent.

use std::collections::BTreeMap;

use moothall_core::money::{MicroUsd, Spent};
use moothall_engine::waves::Reserve;
use serde::{Deserialize, Serialize};

/// A wish for room, and who has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    pub(crate) reserve: Reserve,
    /// Different for every attempt to perform a wave.
    pub(crate) attempt: String,
}

/// What a wave has used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settle {
    pub(crate) wave: String,
    pub(crate) attempt: String,
    pub(crate) used: Spent,
}

/// A wave that has all its answers, and who found that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forfeit {
    pub(crate) wave: String,
    pub(crate) attempt: String,
}

/// The answer to a wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Room {
    /// It is reserved.
    Granted,
    /// Only reservations of others are in the way.
    Wait,
    /// It can never fit, in these words.
    Refused(String),
}

/// The budget of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Account {
    spent: Spent,
    /// By wave.
    reserved: BTreeMap<String, Reserved>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reserved {
    attempt: String,
    usd: MicroUsd,
    tokens: u64,
}

impl Account {
    pub(crate) fn reserve(&mut self, wish: Wish) -> Room {
        let Wish { reserve: Reserve { wave, usd, tokens, budget }, attempt } = wish;
        match self.reserved.get(&wave) {
            // The answer to this very wish was lost on its way.
            Some(reserved) if reserved.attempt == attempt => return Room::Granted,
            // Whoever had it died in mid-call, and nobody knows the bill.
            Some(_) => self.give_up(&wave),
            None => {}
        }
        let fits = |used: Spent| {
            budget.usd.is_none_or(|cap| used.usd.saturating_add(usd) <= cap)
                && budget.tokens.is_none_or(|cap| used.tokens.saturating_add(tokens) <= cap)
        };
        if !fits(self.spent) {
            return Room::Refused(refusal(&self.spent, &Reserve { wave, usd, tokens, budget }));
        }
        if !fits(self.at_most()) {
            return Room::Wait;
        }
        self.reserved.insert(wave, Reserved { attempt, usd, tokens });
        Room::Granted
    }

    /// Counts what a wave has used in the place of what it had reserved. One that is settled already
    /// is not counted again.
    pub(crate) fn settle(&mut self, settle: Settle) -> Spent {
        let Settle { wave, attempt, used } = settle;
        if self.reserved.get(&wave).is_some_and(|reserved| reserved.attempt == attempt) {
            self.reserved.remove(&wave);
            self.spent.usd = self.spent.usd.saturating_add(used.usd);
            self.spent.tokens = self.spent.tokens.saturating_add(used.tokens);
            self.spent.uncertain_usd = self.spent.uncertain_usd.saturating_add(used.uncertain_usd);
            self.spent.unpriced_calls =
                self.spent.unpriced_calls.saturating_add(used.unpriced_calls);
        }
        self.at_most()
    }

    /// Counts as spent what another attempt at this wave had reserved.
    pub(crate) fn forfeit(&mut self, forfeit: &Forfeit) -> Spent {
        let Forfeit { wave, attempt } = forfeit;
        if self.reserved.get(wave).is_some_and(|reserved| reserved.attempt != *attempt) {
            self.give_up(wave);
        }
        self.at_most()
    }

    fn give_up(&mut self, wave: &str) {
        if let Some(Reserved { usd, tokens, .. }) = self.reserved.remove(wave) {
            self.spent.count_uncertain(Some(usd), tokens);
        }
    }

    /// What was spent, with everything that is reserved counted in full.
    pub(crate) fn at_most(&self) -> Spent {
        let mut spent = self.spent;
        for Reserved { usd, tokens, .. } in self.reserved.values() {
            spent.count_uncertain(Some(*usd), *tokens);
        }
        spent
    }
}

fn refusal(spent: &Spent, wish: &Reserve) -> String {
    match (wish.budget.usd, wish.budget.tokens) {
        (Some(cap), _) if spent.usd.saturating_add(wish.usd) > cap => {
            let left = cap.saturating_sub(spent.usd);
            let needed = wish.usd;
            format!("the calls may cost {needed}, but only {left} of the run's {cap} are left")
        }
        (_, cap) => {
            let cap = cap.unwrap_or_default();
            let (needed, left) = (wish.tokens, cap.saturating_sub(spent.tokens));
            format!(
                "the calls may use {needed} tokens, but only {left} of the run's {cap} are left"
            )
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
