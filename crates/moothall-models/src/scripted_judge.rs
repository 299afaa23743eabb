//! Scripted judges as a model: the panel and the debates of a benchmark without key and network.
//!
//! Only `moothall eval` uses this backend. Its answers are a function of the request, except for the
//! number of a debate: the same move is debated several times with equal requests, and every debate
//! has its own luck. Debates about the same move never overlap, so counting them is reproducible.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use moothall_core::Sha256Hex;
use moothall_core::benchmark::{DebateScript, ScriptedJudges};
use moothall_core::model::{ModelRequest, TokenUsage};
use moothall_core::tokens_expected;

use crate::backend::{AnswerFuture, BackendReply, ModelAttempt, ModelBackend};
use crate::wire::{RawReply, RawStopReason};

/// The reply of a judge that fails: it has no scores.
const UNUSABLE: &str = "This case cannot be scored.";

/// Answers for everyone in a benchmark run.
#[derive(Debug)]
pub struct ScriptedJudgeBackend {
    judges: ScriptedJudges,
    /// Debates so far, by company and move.
    draws: Mutex<BTreeMap<Sha256Hex, usize>>,
}

impl ScriptedJudgeBackend {
    /// A backend for one benchmark.
    pub fn new(judges: ScriptedJudges) -> Self {
        Self { judges, draws: Mutex::default() }
    }

    fn text(&self, request: &ModelRequest) -> String {
        let draw = DebateScript::opening_key(request).map_or(0, |key| {
            let mut draws = self.draws.lock().unwrap_or_else(PoisonError::into_inner);
            let next = draws.entry(Sha256Hex::of(key.as_bytes())).or_default();
            *next += 1;
            *next - 1
        });
        let answer = DebateScript::new(&self.judges).answer(request, draw);
        answer.unwrap_or_else(|| UNUSABLE.to_owned())
    }
}

impl ModelBackend for ScriptedJudgeBackend {
    fn answer<'a>(&'a self, call: ModelAttempt<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            let text = self.text(call.request);
            if let Some(listener) = call.listener {
                listener.text(&text);
            }
            let usage = TokenUsage {
                input: call.request.prompt_tokens_expected(),
                output: tokens_expected(&text).min(u64::from(call.request.max_tokens)),
                ..TokenUsage::default()
            };
            let model = Some(call.request.model.to_string());
            let answer = RawReply { text, stop: RawStopReason::End, usage: Some(usage), model };
            Ok(BackendReply { answer, window: None })
        })
    }
}

#[cfg(test)]
#[path = "scripted_judge_tests.rs"]
mod tests;
