//! Answers that fallbacks gave instead of unavailable models. Derived from the events of the calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::costs::role_of;
use crate::event::RunEventBody;
use crate::model::FailureKind;

/// The answers of one role that a fallback gave instead of the requested model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FallbackUse {
    /// The role, such as `critic`.
    pub role: String,
    /// The requested model.
    pub model: String,
    /// The model that answered.
    pub fallback: String,
    /// Why the requested model did not answer, for the first of these answers.
    pub reason: FailureKind,
    /// The number of answers by agent or move, such as `analyst_2` or `m7`.
    pub answers: BTreeMap<String, u32>,
}

impl FallbackUse {
    /// Adds an event to the table. Returns the new row if the event is the first of its kind.
    pub fn count<'a>(table: &'a mut Vec<Self>, body: &RunEventBody) -> Option<&'a Self> {
        let RunEventBody::ModelReplied {
            effect_id, purpose, model, instead_of: Some(instead), ..
        } = body
        else {
            return None;
        };
        let (role, requested, fallback) =
            (role_of(*purpose), instead.model.to_string(), model.to_string());
        let place = effect_id.as_str().split('/').next().unwrap_or_default().to_owned();
        let is_same =
            |row: &Self| row.role == role && row.model == requested && row.fallback == fallback;
        let known = table.iter().position(is_same);
        let at = known.unwrap_or(table.len());
        if known.is_none() {
            let (role, reason) = (role.to_owned(), instead.reason);
            let answers = BTreeMap::new();
            table.push(Self { role, model: requested, fallback, reason, answers });
        }
        let row = table.get_mut(at)?;
        let count = row.answers.entry(place).or_default();
        *count = count.saturating_add(1);
        known.is_none().then_some(&*row)
    }

    /// The table of these events.
    pub fn of_events<'a>(bodies: impl IntoIterator<Item = &'a RunEventBody>) -> Vec<Self> {
        let mut table = Vec::new();
        for body in bodies {
            Self::count(&mut table, body);
        }
        // Concurrent calls finish in any order.
        table.sort_by(|one, other| {
            (&one.role, &one.model, &one.fallback).cmp(&(
                &other.role,
                &other.model,
                &other.fallback,
            ))
        });
        table
    }

    /// The notice for the first of these answers.
    pub fn notice(&self) -> String {
        let Self { role, model, fallback, reason, .. } = self;
        format!("{role}: {model} is unavailable ({reason}); using {fallback}")
    }

    /// All of these answers, on one line.
    pub fn describe(&self) -> String {
        let Self { role, model, fallback, reason, answers } = self;
        let total: u32 = answers.values().fold(0, |sum, count| sum.saturating_add(*count));
        let plural = if total == 1 { "" } else { "s" };
        let mut places: Vec<(&String, &u32)> = answers.iter().collect();
        places.sort_by_key(|(place, _)| (super::move_number(place), (*place).clone()));
        let places: Vec<String> =
            places.iter().map(|(place, count)| format!("{place} {count}")).collect();
        format!(
            "{role}: {total} answer{plural} by {fallback} instead of {model} ({reason}): {}",
            places.join(", ")
        )
    }
}

#[cfg(test)]
#[path = "fallback_use_tests.rs"]
mod tests;
