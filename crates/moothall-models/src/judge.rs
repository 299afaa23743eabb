//! Whether an answer can be used, what it used and what it cost. Pure, because every backend's
//! answers pass here.

use moothall_core::model::{
    FailureKind, ModelFailure, ModelReply, ModelRequest, StopReason, Usage, UsageBasis,
};
use moothall_core::tokens_expected;

use crate::backend::Answered;
use crate::catalog::ModelCard;
use crate::ledger::Amount;
use crate::wire::{Answer, AnswerStop};

/// Below this size our estimate of a prompt is too coarse to accuse anyone of cutting it.
const SMALLEST_JUDGED_PROMPT: u64 = 400;

/// A prompt count this many times below our estimate means that most of the prompt was dropped.
/// Estimates are off by a quarter for English, by up to two and a half times for other scripts.
const FAR_BELOW: u64 = 4;

/// An answer with its bill.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) amount: Amount,
    pub(crate) result: Result<ModelReply, ModelFailure>,
}

pub(crate) fn judge(request: &ModelRequest, card: &ModelCard, answered: Answered) -> Judged {
    let Answered { answer, window } = answered;
    let (usage, basis) = believable_usage(request, &answer);
    let cost = card.prices.map(|prices| prices.cost(&usage));
    let amount = Amount { usd: cost, tokens: usage.total() };
    let result = match unusable(request, &answer, usage, basis, window) {
        Some(failure) => Err(failure),
        None => Ok(ModelReply {
            stop: match answer.stop {
                AnswerStop::End => StopReason::End,
                AnswerStop::MaxTokens => StopReason::MaxTokens,
                AnswerStop::Refusal | AnswerStop::Other => StopReason::Other,
            },
            model: answer.model.unwrap_or_else(|| request.model.name().to_owned()),
            text: answer.text,
            usage,
            usage_basis: basis,
            cost_micro_usd: cost,
        }),
    };
    Judged { amount, result }
}

fn unusable(
    request: &ModelRequest,
    answer: &Answer,
    usage: Usage,
    basis: UsageBasis,
    window: Option<u64>,
) -> Option<ModelFailure> {
    if answer.stop == AnswerStop::Refusal {
        let words: String = answer.text.chars().take(200).collect();
        let detail = if words.trim().is_empty() {
            "the model declined to answer".to_owned()
        } else {
            format!("the model declined: {words}")
        };
        return Some(ModelFailure::new(FailureKind::Refused, detail));
    }
    if basis == UsageBasis::Reported
        && let Some(why) = prompt_was_cut(request, usage, window)
    {
        return Some(ModelFailure::new(FailureKind::ContextTruncated, why));
    }
    // An answer that was cut off before its first word is not empty, it is cut off: all its tokens
    // went into thinking.
    if answer.text.trim().is_empty() && answer.stop != AnswerStop::MaxTokens {
        return Some(ModelFailure::new(FailureKind::EmptyReply, "the answer has no text"));
    }
    None
}

fn prompt_was_cut(request: &ModelRequest, usage: Usage, window: Option<u64>) -> Option<String> {
    let seen = usage.prompt();
    if let Some(window) = window
        && (usage.total() == window || seen >= window)
    {
        return Some(format!(
            "prompt and answer fill the window of {window} tokens to the last one, so the prompt was cut"
        ));
    }
    // The bound is free, the estimate is not: most answers are cleared by the bound.
    if seen.saturating_mul(FAR_BELOW) >= request.prompt_tokens_at_most() {
        return None;
    }
    // Without the schema: some servers turn it into a grammar, so that it never becomes part of the
    // prompt.
    let schema = request.schema.as_ref().map_or(0, |schema| tokens_expected(schema.text()));
    let expected = request.prompt_tokens_expected().saturating_sub(schema);
    if expected >= SMALLEST_JUDGED_PROMPT && seen.saturating_mul(FAR_BELOW) < expected {
        return Some(format!(
            "the provider read {seen} prompt tokens where about {expected} were sent, so the prompt was cut"
        ));
    }
    None
}

/// The provider's numbers where they are possible; our expectation where there are none; the most
/// that is possible where they are not.
fn believable_usage(request: &ModelRequest, answer: &Answer) -> (Usage, UsageBasis) {
    let (prompt_at_most, output_at_most) =
        (request.prompt_tokens_at_most(), u64::from(request.max_tokens));
    match answer.usage {
        Some(usage) if usage.prompt() == 0 => {
            (expected_usage(request, answer), UsageBasis::Estimated)
        }
        Some(usage) if usage.prompt() <= prompt_at_most && usage.output <= output_at_most => {
            (usage, UsageBasis::Reported)
        }
        Some(_) => {
            let most = Usage { input: prompt_at_most, output: output_at_most, ..Usage::default() };
            (most, UsageBasis::Bounded)
        }
        None => (expected_usage(request, answer), UsageBasis::Estimated),
    }
}

fn expected_usage(request: &ModelRequest, answer: &Answer) -> Usage {
    let output = tokens_expected(&answer.text).min(u64::from(request.max_tokens));
    Usage { input: request.prompt_tokens_expected(), output, ..Usage::default() }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
