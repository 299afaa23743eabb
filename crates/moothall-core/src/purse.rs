//! The budget of a run whose calls go out from several machines: what it allows, decided in one place.
//!
//! Invariant: while providers keep to the limits of requests, what was settled and what is reserved
//! never exceed the budget together. A reservation whose worker died counts as spent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::money::{MicroUsd, Spent};

/// The most a run may use. Absent means no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<MicroUsd>,
    /// Tokens, prompt and answer together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// A wish for room in the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The calls that it is for, by the first of their effects.
    pub wave: String,
    /// Different for every attempt to make them: that is how one sees that somebody died in
    /// mid-call.
    pub attempt: String,
    /// The most that they can cost.
    pub usd: MicroUsd,
    /// The most that they can use.
    pub tokens: u64,
    /// The budget of the run.
    pub budget: Budget,
}

/// What is said of a reservation in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// What the calls have used.
    Settle {
        /// The calls.
        wave: String,
        /// Who made them.
        attempt: String,
        /// What it was.
        used: Spent,
    },
    /// All answers are there, and whoever else reserved for them died before it said what they used.
    Forfeit {
        /// The calls.
        wave: String,
        /// Who found that.
        attempt: String,
    },
}

/// The answer to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
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
pub struct Account {
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
    /// Takes room. Where another attempt has it already, that one died, and nobody knows its bill.
    pub fn reserve(&mut self, wish: &Reserve) -> Room {
        let Reserve { wave, attempt, usd, tokens, budget } = wish;
        match self.reserved.get(wave) {
            // The answer to this very wish was lost on its way.
            Some(reserved) if reserved.attempt == *attempt => return Room::Granted,
            Some(_) => self.give_up(wave),
            None => {}
        }
        let fits = |used: Spent| {
            budget.usd.is_none_or(|cap| used.usd.saturating_add(*usd) <= cap)
                && budget.tokens.is_none_or(|cap| used.tokens.saturating_add(*tokens) <= cap)
        };
        if !fits(self.spent) {
            return Room::Refused(refusal(&self.spent, wish));
        }
        if !fits(self.at_most()) {
            return Room::Wait;
        }
        let reserved = Reserved { attempt: attempt.clone(), usd: *usd, tokens: *tokens };
        self.reserved.insert(wave.clone(), reserved);
        Room::Granted
    }

    /// Hears what became of a reservation; to hear it twice is to hear it once.
    pub fn hear(&mut self, word: &Word) {
        match word {
            Word::Settle { wave, attempt, used } => {
                if self.reserved.get(wave).is_some_and(|reserved| reserved.attempt == *attempt) {
                    self.reserved.remove(wave);
                    self.count(used);
                }
            }
            Word::Forfeit { wave, attempt } => {
                if self.reserved.get(wave).is_some_and(|reserved| reserved.attempt != *attempt) {
                    self.give_up(wave);
                }
            }
        }
    }

    fn count(&mut self, used: &Spent) {
        let spent = &mut self.spent;
        spent.usd = spent.usd.saturating_add(used.usd);
        spent.tokens = spent.tokens.saturating_add(used.tokens);
        spent.uncertain_usd = spent.uncertain_usd.saturating_add(used.uncertain_usd);
        spent.unpriced_calls = spent.unpriced_calls.saturating_add(used.unpriced_calls);
    }

    fn give_up(&mut self, wave: &str) {
        if let Some(Reserved { usd, tokens, .. }) = self.reserved.remove(wave) {
            self.spent.count_uncertain(Some(usd), tokens);
        }
    }

    /// What was spent, with everything that is reserved counted in full.
    pub fn at_most(&self) -> Spent {
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
#[path = "purse_tests.rs"]
mod tests;
