//! Checks a reply, and computes its usage and cost. Pure, because the replies of every backend pass
//! through here.

use moothall_core::model::{
    CacheDuration, FailureKind, ModelFailure, ModelReply, ModelRequest, StopReason, TokenUsage,
    UsageBasis,
};
use moothall_core::{tokens_at_most, tokens_expected};

use crate::backend::BackendReply;
use crate::catalog::ModelCard;
use crate::ledger::CallCost;
use crate::repetition::loop_start;
use crate::wire::{RawReply, RawStopReason};

/// Below this size the estimate is too coarse to detect a truncated prompt.
const MIN_CHECKED_PROMPT: u64 = 400;

/// A reported prompt count this many times below the estimate means that most of the prompt was
/// dropped. Estimates are off by 25 % for English and by up to a factor of 2.5 for other scripts.
const TRUNCATION_FACTOR: u64 = 4;

/// A checked reply with its usage and cost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CheckedReply {
    pub(crate) amount: CallCost,
    pub(crate) basis: UsageBasis,
    pub(crate) result: Result<ModelReply, ModelFailure>,
}

pub(crate) fn judge(
    request: &ModelRequest,
    card: &ModelCard,
    answered: BackendReply,
) -> CheckedReply {
    let BackendReply { mut answer, window } = answered;
    let (usage, basis) = plausible_usage(request, &answer);
    let cost = card.prices.map(|prices| prices.cost(&usage));
    let amount = CallCost { usd: cost, tokens: usage.total() };
    // A reply that ends in a loop is incomplete, whatever the provider reports.
    let is_text = matches!(answer.stop, RawStopReason::End | RawStopReason::MaxTokens)
        && !answer.text.trim().is_empty();
    if let Some(start) = loop_start(&answer.text).filter(|_| is_text) {
        answer.text.truncate(start);
        answer.stop = RawStopReason::MaxTokens;
    }
    let result = match unusable(request, &answer, usage, basis, window) {
        Some(failure) => Err(failure),
        None => Ok(ModelReply {
            fallback: None,
            stop: match answer.stop {
                RawStopReason::End => StopReason::End,
                RawStopReason::MaxTokens => StopReason::MaxTokens,
                RawStopReason::Refusal | RawStopReason::Other => StopReason::Other,
            },
            model: answer.model.unwrap_or_else(|| request.model.name().to_owned()),
            text: answer.text,
            usage,
            usage_basis: basis,
            cost_micro_usd: cost,
        }),
    };
    CheckedReply { amount, basis, result }
}

fn unusable(
    request: &ModelRequest,
    answer: &RawReply,
    usage: TokenUsage,
    basis: UsageBasis,
    window: Option<u64>,
) -> Option<ModelFailure> {
    if answer.stop == RawStopReason::Refusal {
        let refusal: String = answer.text.chars().take(200).collect();
        let detail = if refusal.trim().is_empty() {
            "the model refused to answer".to_owned()
        } else {
            format!("the model refused: {refusal}")
        };
        return Some(ModelFailure::new(FailureKind::Refused, detail));
    }
    if basis == UsageBasis::Reported
        && let Some(why) = prompt_was_cut(request, usage, window)
    {
        return Some(ModelFailure::new(FailureKind::ContextTruncated, why));
    }
    // An empty reply at the token limit is cut off, not empty: all its tokens were reasoning.
    if answer.text.trim().is_empty() && answer.stop != RawStopReason::MaxTokens {
        return Some(ModelFailure::new(FailureKind::EmptyReply, "the reply has no text"));
    }
    None
}

fn prompt_was_cut(
    request: &ModelRequest,
    usage: TokenUsage,
    window: Option<u64>,
) -> Option<String> {
    let seen = usage.prompt();
    if let Some(window) = window
        && (usage.total() == window || seen >= window)
    {
        return Some(format!(
            "prompt and reply fill the context window of {window} tokens completely, so the prompt was truncated"
        ));
    }
    // Counting bytes is cheap and clears replies to ordinary text without an estimate. Only prompts
    // of almost nothing but digits have this many tokens per byte; they get a more lenient check.
    let bytes: u64 = request.prompt_texts().map(tokens_at_most).sum();
    if seen.saturating_mul(TRUNCATION_FACTOR + 1) >= bytes {
        return None;
    }
    // Exclude the schema: some servers turn it into a grammar instead of adding it to the prompt.
    let schema = request.schema.as_ref().map_or(0, |schema| tokens_expected(schema.text()));
    let expected = request.prompt_tokens_expected().saturating_sub(schema);
    if expected >= MIN_CHECKED_PROMPT && seen.saturating_mul(TRUNCATION_FACTOR) < expected {
        return Some(format!(
            "the provider counted {seen} prompt tokens of about {expected} sent, so the prompt was truncated"
        ));
    }
    None
}

/// The provider's numbers if they are plausible, our estimate if there are none, and the upper
/// bound if they are too high.
fn plausible_usage(request: &ModelRequest, answer: &RawReply) -> (TokenUsage, UsageBasis) {
    let Some(usage) = answer.usage.filter(|usage| usage.prompt() > 0) else {
        return (expected_usage(request, answer), UsageBasis::Estimated);
    };
    let usage = with_requested_cache(request, usage);
    let prompt_at_most = request.prompt_tokens_at_most();
    // Some providers do not count all reasoning against the limit; far above it is an error.
    let output_at_most = u64::from(request.max_tokens).saturating_mul(2).saturating_add(1024);
    let mut bounded = usage;
    if usage.prompt() > prompt_at_most {
        let kept = TokenUsage {
            output: usage.output,
            reasoning: usage.reasoning,
            ..TokenUsage::default()
        };
        bounded = TokenUsage { input: prompt_at_most, ..kept };
    }
    bounded.output = bounded.output.min(output_at_most);
    bounded.reasoning = bounded.reasoning.min(bounded.output);
    let basis = if bounded == usage { UsageBasis::Reported } else { UsageBasis::Bounded };
    (bounded, basis)
}

/// If the API does not report the cache duration, assume the most expensive one requested.
fn with_requested_cache(request: &ModelRequest, usage: TokenUsage) -> TokenUsage {
    let one_hour = request.blocks().any(|block| block.cache == Some(CacheDuration::OneHour));
    if one_hour && usage.cache_write_1h == 0 {
        return TokenUsage { cache_write_5m: 0, cache_write_1h: usage.cache_write_5m, ..usage };
    }
    usage
}

fn expected_usage(request: &ModelRequest, answer: &RawReply) -> TokenUsage {
    let output = tokens_expected(&answer.text).min(u64::from(request.max_tokens));
    TokenUsage { input: request.prompt_tokens_expected(), output, ..TokenUsage::default() }
}

#[cfg(test)]
#[path = "reply_check_tests.rs"]
mod tests;
