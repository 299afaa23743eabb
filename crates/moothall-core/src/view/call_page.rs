//! Pages of the call log: filters, and sums of the calls that match them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::{CallResult, ModelCall, RunCalls};
use super::consult::move_number;
use super::costs::cost_text;
use crate::model::CallPurpose;
use crate::{EffectId, MicroUsd};

/// Selects calls. Absent conditions match every call; texts are compared without case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// The role or the member: `decision makers`, `D2`.
    pub role: Option<String>,
    /// The stage.
    pub stage: Option<String>,
    /// The move.
    pub move_id: Option<String>,
    /// The round of a debate, or the attempt of a program or an edit.
    pub round: Option<u32>,
    /// The model.
    pub model: Option<String>,
    /// The result.
    pub result: Option<CallResult>,
    /// Only retries and calls without an answer.
    pub only_retries: bool,
    /// Text in the call's name, its reasons or its answer.
    pub text: Option<String>,
}

impl CallFilter {
    /// Whether a call matches; `answer` is the text of its answer.
    pub fn matches(&self, call: &ModelCall, answer: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| {
                found.is_some_and(|found| found.to_lowercase() == wanted.to_lowercase())
            })
        };
        (is(&self.role, Some(&call.role)) || is(&self.role, call.member.as_deref()))
            && is(&self.stage, Some(&call.stage))
            && is(&self.move_id, call.move_id.as_deref())
            && self.round.is_none_or(|round| call.round == Some(round))
            && is(&self.model, Some(&call.model.to_string()))
            && self.result.is_none_or(|result| call.result == result)
            && (!self.only_retries || call.retry || call.result == CallResult::Failed)
            && self.text.as_deref().is_none_or(|text| mentions(call, answer, text))
    }
}

fn mentions(call: &ModelCall, answer: Option<&str>, text: &str) -> bool {
    let text = text.to_lowercase();
    let has = |place: &str| place.to_lowercase().contains(&text);
    has(call.call.as_str()) || call.reasons.iter().any(|one| has(one)) || answer.is_some_and(has)
}

/// A page of the call log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CallPage {
    /// The matching calls after the cursor, in the order in which they finished.
    pub calls: Vec<ModelCall>,
    /// The cursor of the next page; absent if this is the last one so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub next: Option<u64>,
    /// The number of the last event included.
    pub as_of_seq: u64,
    /// The start of the first call of the run, in milliseconds since 1970; 0 without calls.
    pub first_start_ms: u64,
    /// The end of the last call of the run so far, in milliseconds since 1970; 0 without calls.
    pub last_end_ms: u64,
    /// Sums of all calls that match the filters, on this page or not.
    pub matching: CallSums,
    /// Sums of all calls of the run.
    pub all: CallSums,
}

/// Sums of calls, divided in several ways. Each division except those by member, move and round
/// contains every call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CallSums {
    /// All calls together.
    pub total: CallSum,
    /// By role. The costs are those of the cost breakdown.
    pub roles: Vec<CallSum>,
    /// By stage.
    pub stages: Vec<CallSum>,
    /// By model.
    pub models: Vec<CallSum>,
    /// By result.
    pub results: Vec<CallSum>,
    /// By move; calls for all moves together are named `no move`.
    pub moves: Vec<CallSum>,
    /// By round, for calls that have one.
    pub rounds: Vec<CallSum>,
    /// By member, for calls that have one.
    pub members: Vec<CallSum>,
}

/// The sum of some calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CallSum {
    /// The role, stage, model, result, move, round or member.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// Calls without an answer.
    pub failed_calls: u64,
    /// Prompt tokens, cached or not.
    pub prompt_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost of calls with a known price.
    #[schemars(with = "u64")]
    #[ts(type = "number")]
    pub cost_micro_usd: MicroUsd,
    /// Answers with an unknown price.
    pub unpriced_calls: u64,
    /// The sum of the lengths of the calls.
    pub length_ms: u64,
}

/// The name of the sum of calls that belong to no single move.
pub const NO_MOVE: &str = "no move";

impl CallSum {
    fn add(&mut self, call: &ModelCall) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.calls, 1);
        add(&mut self.prompt_tokens, call.prompt_tokens);
        add(&mut self.cached_tokens, call.cached_tokens);
        add(&mut self.output_tokens, call.output_tokens);
        add(&mut self.length_ms, call.length_ms);
        match call.cost_micro_usd {
            Some(cost) => self.cost_micro_usd = self.cost_micro_usd.saturating_add(cost),
            None if call.result == CallResult::Failed => add(&mut self.failed_calls, 1),
            None => add(&mut self.unpriced_calls, 1),
        }
    }

    /// The cost as text.
    pub fn cost_text(&self) -> String {
        cost_text(self.cost_micro_usd, self.unpriced_calls)
    }
}

/// Sums by a key that sorts them and their name.
struct SumTable<'a, K>(BTreeMap<(K, &'a str), CallSum>);

impl<'a, K: Ord> SumTable<'a, K> {
    fn add(&mut self, key: K, name: &'a str, call: &ModelCall) {
        self.0.entry((key, name)).or_default().add(call);
    }

    fn into_sums(self) -> Vec<CallSum> {
        let named =
            |((_, name), sum): ((K, &str), CallSum)| CallSum { name: name.to_owned(), ..sum };
        self.0.into_iter().map(named).collect()
    }
}

impl<K> Default for SumTable<'_, K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl CallSums {
    /// Adds up calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a ModelCall>) -> Self {
        let calls: Vec<&ModelCall> = calls.into_iter().collect();
        // Roles and stages in the order of a run, because concurrent calls finish in any order.
        let mut first_purpose: BTreeMap<&str, CallPurpose> = BTreeMap::new();
        for call in &calls {
            for name in [&call.role, &call.stage] {
                let first = first_purpose.entry(name).or_insert(call.purpose);
                *first = call.purpose.min(*first);
            }
        }
        let order = |name: &str| first_purpose.get(name).copied();
        let mut total = CallSum { name: "total".to_owned(), ..CallSum::default() };
        let (mut roles, mut stages) = (SumTable::default(), SumTable::default());
        let (mut models, mut results) = (BTreeMap::<String, CallSum>::new(), SumTable::default());
        let (mut moves, mut members) = (SumTable::default(), SumTable::default());
        let mut rounds = BTreeMap::<u32, CallSum>::new();
        for call in calls {
            total.add(call);
            roles.add(order(&call.role), &call.role, call);
            stages.add(order(&call.stage), &call.stage, call);
            results.add(call.result, call.result.as_str(), call);
            let move_id = call.move_id.as_deref().unwrap_or(NO_MOVE);
            moves.add(move_number(move_id), move_id, call);
            models.entry(call.model.to_string()).or_default().add(call);
            if let Some(round) = call.round {
                rounds.entry(round).or_default().add(call);
            }
            if let Some(member) = &call.member {
                members.add(order(&call.role), member, call);
            }
        }
        Self {
            total,
            roles: roles.into_sums(),
            stages: stages.into_sums(),
            models: named(models),
            results: results.into_sums(),
            moves: moves.into_sums(),
            rounds: named(rounds),
            members: members.into_sums(),
        }
    }
}

fn named<K: ToString>(sums: BTreeMap<K, CallSum>) -> Vec<CallSum> {
    sums.into_iter().map(|(name, sum)| CallSum { name: name.to_string(), ..sum }).collect()
}

impl RunCalls {
    /// The calls that match; `answer` returns the text of a call's answer, for a text filter.
    pub fn matching<'a>(
        &'a self,
        filter: &CallFilter,
        answer: &dyn Fn(&EffectId) -> Option<&'a str>,
    ) -> Vec<&'a ModelCall> {
        let text = |call: &ModelCall| filter.text.as_ref().and_then(|_| answer(&call.call));
        self.calls.iter().filter(|call| filter.matches(call, text(call))).collect()
    }

    /// At most `limit` of the matching calls whose number is above `after`.
    pub fn page(&self, matching: &[&ModelCall], after: u64, limit: usize) -> CallPage {
        let mut rest = matching.iter().filter(|call| call.seq > after);
        let calls: Vec<ModelCall> = rest.by_ref().take(limit).map(|call| (*call).clone()).collect();
        let next = rest.next().and_then(|_| calls.last()).map(|call| call.seq);
        let end = |call: &ModelCall| call.started_at_ms.saturating_add(call.length_ms);
        CallPage {
            calls,
            next,
            as_of_seq: self.as_of_seq,
            first_start_ms: self.calls.iter().map(|call| call.started_at_ms).min().unwrap_or(0),
            last_end_ms: self.calls.iter().map(end).max().unwrap_or(0),
            matching: CallSums::of(matching.iter().copied()),
            all: CallSums::of(&self.calls),
        }
    }
}

#[cfg(test)]
#[path = "call_page_tests.rs"]
mod tests;
