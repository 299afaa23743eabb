//! The model calls of a run, derived from its events and the timing of its journal.
//!
//! Calls are listed in the order in which they finished, which is the order of their events. A page
//! of the log is therefore stable while the run continues, and an event number is its cursor.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::consult::is_move_id;
use super::costs::{role_of, stage_of};
use super::is_extra_call;
use crate::debate::DebateDegradation;
use crate::event::{RoundStatus, RunEventBody};
use crate::model::{CallPurpose, ModelName, TokenUsage};
use crate::receipt::EffectTiming;
use crate::{EffectId, MicroUsd};

/// One finished model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct ModelCall {
    /// The number of the event with its result. Calls are listed in this order.
    pub seq: u64,
    /// The call, such as `m7/round-3/D2`.
    #[schemars(with = "String")]
    #[ts(type = "string")]
    pub call: EffectId,
    /// What the call was for.
    #[schemars(with = "String")]
    #[ts(type = "string")]
    pub purpose: CallPurpose,
    /// The role that made the call, such as `decision makers`.
    pub role: String,
    /// The member of the committee, such as `critic`, `D2` or `analyst_3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub member: Option<String>,
    /// The stage, such as `debate`.
    pub stage: String,
    /// The move.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub move_id: Option<String>,
    /// The round of a debate, or the attempt of a program or an edit, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub round: Option<u32>,
    /// The model.
    #[schemars(with = "String")]
    #[ts(type = "string")]
    pub model: ModelName,
    /// The start, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The time from the start to the result, including rate limits and repeated attempts.
    pub length_ms: u64,
    /// How long the call waited for its start after everything it needs was there. Absent if
    /// unknown, or if the run was paused in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub queued_ms: Option<u64>,
    /// Prompt tokens, cached or not.
    pub prompt_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost; absent if the price is unknown or the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    #[ts(type = "number", optional)]
    pub cost_micro_usd: Option<MicroUsd>,
    /// Requests that were sent to the provider.
    pub attempts: u32,
    /// Whether the call repeats another one because its answer was not good enough.
    pub retry: bool,
    /// What became of the answer.
    pub result: CallResult,
    /// Why the answer was not used unchanged; empty if it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub reasons: Vec<String>,
}

/// What became of the answer of a call.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    ts_rs::TS,
)]
#[serde(rename_all = "kebab-case")]
pub enum CallResult {
    /// The answer was used.
    Used,
    /// The answer was used although it was invalid.
    Degraded,
    /// The answer was invalid and was not used.
    Rejected,
    /// There was no answer.
    Failed,
}

impl CallResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Used, Self::Degraded, Self::Rejected, Self::Failed];

    /// The name in files, filters and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Degraded => "degraded",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
        }
    }
}

/// The text is not the name of a call result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown result: expected used, degraded, rejected or failed")]
pub struct UnknownCallResult;

impl std::str::FromStr for CallResult {
    type Err = UnknownCallResult;

    fn from_str(text: &str) -> Result<Self, UnknownCallResult> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or(UnknownCallResult)
    }
}

/// The finished model calls of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunCalls {
    /// The number of the last event included.
    pub as_of_seq: u64,
    /// The calls, in the order in which they finished.
    pub calls: Vec<ModelCall>,
    positions: BTreeMap<EffectId, usize>,
    readiness: CallReadiness,
    /// The analyst of each move.
    authors: BTreeMap<String, String>,
}

impl RunCalls {
    /// Applies the event with this number and time. `timing` is the journaled timing of the call
    /// that the event is about, if it is about a call.
    pub fn apply(
        &mut self,
        seq: u64,
        at_ms: u64,
        body: &RunEventBody,
        timing: Option<EffectTiming>,
    ) {
        if seq <= self.as_of_seq {
            return;
        }
        self.as_of_seq = seq;
        let timing = timing.unwrap_or(EffectTiming { latency_ms: 0, tries: 0 });
        match body {
            RunEventBody::ModelReplied {
                effect_id, purpose, model, usage, cost_micro_usd, ..
            } => {
                let call = self.finished(seq, at_ms, (effect_id, *purpose, model), timing);
                self.push(ModelCall { cost_micro_usd: *cost_micro_usd, ..call.with_usage(usage) });
            }
            RunEventBody::ModelFailed { effect_id, purpose, model, kind, detail } => {
                let call = self.finished(seq, at_ms, (effect_id, *purpose, model), timing);
                let reasons = vec![format!("{kind}: {detail}")];
                self.push(ModelCall { result: CallResult::Failed, reasons, ..call });
            }
            RunEventBody::OutputRejected { effect_id, problems } => {
                self.change(effect_id, |call| {
                    call.result = CallResult::Rejected;
                    call.reasons.extend(problems.iter().cloned());
                });
            }
            // A debate keeps the text of a message that is invalid even after a retry.
            RunEventBody::SandboxTurn { effect_id, .. } => {
                self.change(effect_id, |call| {
                    if call.result == CallResult::Rejected {
                        call.result = CallResult::Degraded;
                        call.reasons.push("kept as unstructured text".to_owned());
                    }
                });
            }
            RunEventBody::SandboxScored { move_id, degraded, .. } => {
                for one in degraded {
                    if let DebateDegradation::ScoreFromText { decision_maker } = one {
                        self.score_from_text(move_id, decision_maker);
                    }
                }
            }
            RunEventBody::ClaimChecked {
                effect_id, document, numbers, supported, rewrite, ..
            } => {
                let author = effect_id.as_str().split('/').next().unwrap_or_default();
                let name = document.strip_suffix(".md").unwrap_or(document);
                if is_move_id(name) && !is_move_id(author) {
                    self.authors.insert(name.to_owned(), author.to_owned());
                }
                if *rewrite {
                    let reason = format!(
                        "{document}: {supported} of {numbers} numbers supported; rewritten"
                    );
                    self.change(effect_id, |call| call.reasons.push(reason));
                }
            }
            _ => {}
        }
        self.readiness.apply(at_ms, body);
    }

    /// A call that ended at this time, without its usage.
    fn finished(
        &self,
        seq: u64,
        at_ms: u64,
        (id, purpose, model): (&EffectId, CallPurpose, &ModelName),
        timing: EffectTiming,
    ) -> ModelCall {
        let path = CallPath::of(id);
        let started_at_ms = at_ms.saturating_sub(timing.latency_ms);
        let member = path.member(purpose).map(str::to_owned);
        let member = member.or_else(|| {
            let author = path.move_id.and_then(|one| self.authors.get(one));
            author.filter(|_| purpose == CallPurpose::Analyst).cloned()
        });
        ModelCall {
            seq,
            call: id.clone(),
            purpose,
            role: role_of(purpose).to_owned(),
            member,
            stage: stage_of(purpose).to_owned(),
            move_id: path.move_id.map(str::to_owned),
            round: path.round,
            model: model.clone(),
            started_at_ms,
            length_ms: timing.latency_ms,
            queued_ms: self.readiness.queued_ms(id, &path, purpose, started_at_ms),
            prompt_tokens: 0,
            cached_tokens: 0,
            output_tokens: 0,
            cost_micro_usd: None,
            attempts: timing.tries,
            retry: is_extra_call(id),
            result: CallResult::Used,
            reasons: Vec::new(),
        }
    }

    fn push(&mut self, call: ModelCall) {
        self.positions.insert(call.call.clone(), self.calls.len());
        self.calls.push(call);
    }

    fn change(&mut self, id: &EffectId, change: impl FnOnce(&mut ModelCall)) {
        let position = self.positions.get(id);
        if let Some(call) = position.and_then(|position| self.calls.get_mut(*position)) {
            change(call);
        }
    }

    /// The scores of a decision maker were read from its last invalid answer.
    fn score_from_text(&mut self, move_id: &str, decision_maker: &str) {
        let first = format!("{move_id}/score/{decision_maker}");
        for path in [format!("{first}/ask-2"), first] {
            let Ok(id) = path.parse::<EffectId>() else { return };
            let Some(position) = self.positions.get(&id) else { continue };
            let Some(call) = self.calls.get_mut(*position) else { continue };
            if call.result == CallResult::Rejected {
                call.result = CallResult::Degraded;
                call.reasons.push("scores read from prose".to_owned());
                return;
            }
        }
    }

    /// Finds a call.
    pub fn find(&self, id: &EffectId) -> Option<&ModelCall> {
        self.calls.get(*self.positions.get(id)?)
    }
}

impl ModelCall {
    fn with_usage(self, usage: &TokenUsage) -> Self {
        Self {
            prompt_tokens: usage.prompt(),
            cached_tokens: usage.cache_read,
            output_tokens: usage.output,
            ..self
        }
    }
}

/// What the path of a call says about it.
struct CallPath<'a> {
    segments: Vec<&'a str>,
    move_id: Option<&'a str>,
    round: Option<u32>,
}

impl<'a> CallPath<'a> {
    fn of(id: &'a EffectId) -> Self {
        let segments: Vec<&str> = id.as_str().split('/').collect();
        let move_id = segments.first().copied().filter(|first| is_move_id(first));
        let number = |segment: &str| {
            let digits =
                segment.strip_prefix("round-").or_else(|| segment.strip_prefix("attempt-"));
            digits?.parse().ok()
        };
        let round = segments.iter().find_map(|segment| number(segment));
        Self { segments, move_id, round }
    }

    fn member(&self, purpose: CallPurpose) -> Option<&'a str> {
        match purpose {
            CallPurpose::Critic => Some("critic"),
            CallPurpose::Analyst if self.move_id.is_some() => None,
            CallPurpose::Analyst | CallPurpose::InferFinancial | CallPurpose::InferTrend => {
                self.segments.first().copied()
            }
            CallPurpose::DecisionMaker
            | CallPurpose::Score
            | CallPurpose::ScoreNothing
            | CallPurpose::ScoreBaseline => {
                self.segments.iter().rev().find(|segment| !segment.starts_with("ask-")).copied()
            }
            _ => None,
        }
    }
}

/// When calls could start: the time of the event that they follow from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CallReadiness {
    /// By call, move, attempt or layer.
    times: BTreeMap<String, u64>,
    paused_at_ms: Option<u64>,
}

impl CallReadiness {
    fn apply(&mut self, at_ms: u64, body: &RunEventBody) {
        let key = match body {
            RunEventBody::RunPaused { .. } => {
                self.paused_at_ms = Some(at_ms);
                return;
            }
            RunEventBody::LayerStart { layer, .. } => layer_key(*layer),
            // A retry follows from the answer that it repeats.
            RunEventBody::ModelReplied { effect_id, .. } => effect_id.to_string(),
            RunEventBody::ClaimChecked { document, rewrite: true, .. } => {
                format!("{}/rewrite", document.strip_suffix(".md").unwrap_or(document))
            }
            // Both sides of a debate wait for all answers of the other side.
            RunEventBody::SandboxRound {
                move_id,
                status: RoundStatus::CriticResponded | RoundStatus::DmResponded,
                ..
            } => move_id.clone(),
            RunEventBody::AttemptStarted { attempt, .. } => format!("attempt-{attempt}"),
            RunEventBody::Judged { attempt, .. } => format!("attempt-{attempt}/critique"),
            _ => return,
        };
        self.times.insert(key, at_ms);
    }

    fn queued_ms(
        &self,
        id: &EffectId,
        path: &CallPath<'_>,
        purpose: CallPurpose,
        started_at_ms: u64,
    ) -> Option<u64> {
        let ready_at_ms = self.ready_at_ms(id, path, purpose)?;
        let was_paused = self.paused_at_ms.is_some_and(|paused| paused >= ready_at_ms);
        (!was_paused).then(|| started_at_ms.saturating_sub(ready_at_ms))
    }

    fn ready_at_ms(&self, id: &EffectId, path: &CallPath<'_>, purpose: CallPurpose) -> Option<u64> {
        let time = |key: &str| self.times.get(key).copied();
        let layer = |layer: u8| time(&layer_key(layer));
        let last = path.segments.last().copied().unwrap_or_default();
        let parent = || Some(id.as_str().rsplit_once('/')?.0);
        if last == "rewrite" {
            return time(id.as_str());
        }
        if last.starts_with("ask-") {
            return time(parent()?);
        }
        match purpose {
            CallPurpose::SynthesizeFinancials | CallPurpose::SynthesizeNews => layer(0),
            CallPurpose::InferFinancial | CallPurpose::InferTrend => layer(1),
            CallPurpose::Analyst => layer(2),
            CallPurpose::Critic | CallPurpose::DecisionMaker | CallPurpose::Score => {
                time(path.move_id?).or_else(|| layer(3))
            }
            CallPurpose::ScoreNothing | CallPurpose::ScoreBaseline => layer(3),
            CallPurpose::Generate => time(parent()?),
            CallPurpose::Critique => time(id.as_str()),
            _ => None,
        }
    }
}

fn layer_key(layer: u8) -> String {
    format!("layer-{layer}")
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
