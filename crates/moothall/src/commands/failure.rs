//! What a person can do about a call that failed.

use moothall_core::model::{FailureKind, ModelFailure, ModelName};

use moothall_core::RunId;

use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::local;

/// The error of a failed call, with the cure where we know it.
pub(super) fn of_call(context: &Context, model: &ModelName, failure: &ModelFailure) -> CliError {
    let (exit, what) = match failure.kind {
        FailureKind::OverBudget => (Exit::BudgetStopped, "was not asked"),
        FailureKind::PriceUnknown => (Exit::Usage, "was not asked"),
        _ => (Exit::Failed, "gave no answer"),
    };
    let error = CliError::new(exit, format!("{model} {what} ({failure})"));
    match hint(context, model, failure) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The error of a run that stands still because a provider refuses the key or its account.
pub(super) fn of_pause(
    context: &Context,
    model: &ModelName,
    failure: &ModelFailure,
    run_id: &RunId,
) -> CliError {
    let id = local::short(run_id);
    let words = format!("run {id} is paused: {model} gave no answer ({failure})");
    let go_on = format!("let it go on: `moothall resume {id}`");
    CliError::new(Exit::Failed, words).with_hint(match hint(context, model, failure) {
        Some(cure) => format!("{cure} then {go_on}"),
        None => go_on,
    })
}

fn hint(context: &Context, model: &ModelName, failure: &ModelFailure) -> Option<String> {
    let provider = context.catalog.provider(model.provider());
    let address = provider.map_or("", |provider| provider.base_url.as_str());
    match failure.kind {
        // Without a status nobody refused the key: we did, and said why.
        FailureKind::Auth if failure.status.is_none() => None,
        FailureKind::Auth if matches!(failure.status, Some(402 | 429)) => {
            Some("has the account behind the key any credit left?".to_owned())
        }
        FailureKind::Auth => match context.keys.source(model.provider()) {
            Some(source) => Some(format!("is the key from {source} right, and may it use this model?")),
            None => context.keys.hint(model.provider()).map(str::to_owned),
        },
        FailureKind::RateLimited | FailureKind::Overloaded => Some(match failure.retry_after_ms {
            Some(wait) => format!("wait {} seconds, or choose another model", wait.div_ceil(1000)),
            None => "wait a little, or choose another model".to_owned(),
        }),
        FailureKind::Transport if model.provider() == "ollama" => {
            Some(format!("is Ollama running at {address}? start it with `ollama serve`"))
        }
        FailureKind::Transport => Some(format!("is {address} reachable from here?")),
        FailureKind::TimedOut => Some("allow more time with `--timeout`".to_owned()),
        FailureKind::ContextOverflow | FailureKind::ContextTruncated => Some("shorten the prompt, or choose a model with a larger window".to_owned()),
        FailureKind::BadRequest if failure.status == Some(404) => Some("is the model's name right? `moothall models` lists some".to_owned()),
        FailureKind::OverBudget => {
            // With both budgets set, the failure says which one is used up.
            let in_tokens = context.budget().usd.is_none() || failure.detail.contains("tokens");
            let flag = if in_tokens { "--budget-tokens" } else { "--budget" };
            Some(format!("raise `{flag}`, or lower `--max-tokens`"))
        }
        FailureKind::PriceUnknown => {
            Some("add the model's price to a catalog file, or limit tokens with `--budget-tokens` instead".to_owned())
        }
        FailureKind::NotFound => Some("record it first with `--record DIR`".to_owned()),
        _ => None,
    }
}
