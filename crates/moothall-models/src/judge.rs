//! Whether an answer can be used, what it used and what it cost. Pure, because every backend's
//! answers pass here.

use moothall_core::model::{
    CacheFor, FailureKind, ModelFailure, ModelReply, ModelRequest, StopReason, Usage, UsageBasis,
};
use moothall_core::{tokens_at_most, tokens_expected};

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
    pub(crate) basis: UsageBasis,
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
    Judged { amount, basis, result }
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
    // Counting bytes is free, estimating is not: an answer to ordinary text is cleared here. Only a
    // prompt of almost nothing but digits has this many tokens a byte, and is judged more mildly.
    let bytes: u64 = request.prompt_texts().map(tokens_at_most).sum();
    if seen.saturating_mul(FAR_BELOW + 1) >= bytes {
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
    let Some(usage) = answer.usage.filter(|usage| usage.prompt() > 0) else {
        return (expected_usage(request, answer), UsageBasis::Estimated);
    };
    let usage = with_asked_cache(request, usage);
    let prompt_at_most = request.prompt_tokens_at_most();
    // Some providers do not count all thinking against the limit; far beyond it is a mistake.
    let output_at_most = u64::from(request.max_tokens).saturating_mul(2).saturating_add(1024);
    let mut bounded = usage;
    if usage.prompt() > prompt_at_most {
        let kept = Usage { output: usage.output, reasoning: usage.reasoning, ..Usage::default() };
        bounded = Usage { input: prompt_at_most, ..kept };
    }
    bounded.output = bounded.output.min(output_at_most);
    bounded.reasoning = bounded.reasoning.min(bounded.output);
    let basis = if bounded == usage { UsageBasis::Reported } else { UsageBasis::Bounded };
    (bounded, basis)
}

/// A wire that does not tell for how long it cached gets the dearer of what was asked for.
fn with_asked_cache(request: &ModelRequest, usage: Usage) -> Usage {
    let one_hour = request.blocks().any(|block| block.cache == Some(CacheFor::OneHour));
    if one_hour && usage.cache_write_1h == 0 {
        return Usage { cache_write_5m: 0, cache_write_1h: usage.cache_write_5m, ..usage };
    }
    usage
}

fn expected_usage(request: &ModelRequest, answer: &Answer) -> Usage {
    let output = tokens_expected(&answer.text).min(u64::from(request.max_tokens));
    Usage { input: request.prompt_tokens_expected(), output, ..Usage::default() }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
