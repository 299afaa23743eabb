//! Errors of failed model calls, with hints.

use moothall_core::model::{FailureKind, ModelFailure, ModelName};

use moothall_core::RunId;

use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::keys::KeySource;
use crate::run_store;

/// The error of a failed call, with a hint if the cause is known.
pub(crate) fn of_call(
    context: &CommandContext,
    model: &ModelName,
    failure: &ModelFailure,
) -> CliError {
    let (exit, what) = match failure.kind {
        FailureKind::OverBudget => (CliExit::BudgetStopped, "was not called"),
        FailureKind::PriceUnknown => (CliExit::Usage, "was not called"),
        _ => (CliExit::Failed, "did not answer"),
    };
    let error = CliError::new(exit, format!("{model} {what} ({failure})"));
    match hint(context, model, failure) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The error of a run that is paused because a provider gives no answer.
pub(crate) fn of_pause(
    context: &CommandContext,
    model: &ModelName,
    failure: &ModelFailure,
    run_id: &RunId,
) -> CliError {
    let id = run_store::short_id(run_id);
    let message = format!("run {id} is paused: {model} did not answer ({failure})");
    let resume_hint = format!("continue with `moothall resume {id}`");
    CliError::new(CliExit::Failed, message).with_hint(match hint(context, model, failure) {
        Some(fix) => format!("{fix}; then {resume_hint}"),
        None => resume_hint,
    })
}

fn hint(context: &CommandContext, model: &ModelName, failure: &ModelFailure) -> Option<String> {
    let provider = context.catalog.provider(model.provider());
    let address = provider.map_or("", |provider| provider.base_url.as_str());
    match failure.kind {
        // Without a status, moothall itself rejected the key, and the failure says why.
        FailureKind::Auth if failure.status.is_none() => match context.keys.source(model.provider()) {
            Some(KeySource::Command) => {
                Some("run the command yourself to see its complete output".to_owned())
            }
            _ => None,
        },
        FailureKind::Auth if matches!(failure.status, Some(402 | 429)) => {
            Some("check that the account of the API key has credit left".to_owned())
        }
        FailureKind::Auth => match context.keys.source(model.provider()) {
            Some(source) => Some(format!("check the key from {source} and that it may use this model")),
            None => context.keys.hint(model.provider()).map(str::to_owned),
        },
        FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::Server
        | FailureKind::Truncated
        | FailureKind::EmptyReply => Some(match failure.retry_after_ms {
            Some(wait) => format!("wait {} seconds, or choose another model", wait.div_ceil(1000)),
            None => "wait a moment, or choose another model".to_owned(),
        }),
        FailureKind::Transport if model.provider() == "ollama" => {
            Some(format!("check that Ollama runs at {address}; start it with `ollama serve`"))
        }
        FailureKind::Transport => Some(format!("check that {address} is reachable")),
        FailureKind::TimedOut => {
            Some(format!("raise `provider.{}.timeout` in moothall.toml", model.provider()))
        }
        FailureKind::Malformed => Some(format!("check that {address} is the provider's API address")),
        FailureKind::ContextOverflow | FailureKind::ContextTruncated => Some("shorten the prompt, or choose a model with a larger context window".to_owned()),
        FailureKind::BadRequest if failure.status == Some(404) => Some("check the model name; `moothall models` lists known models".to_owned()),
        FailureKind::BadRequest => {
            Some("check that the model supports the options of this call, or choose another model".to_owned())
        }
        FailureKind::Refused => Some("change the prompt, or choose another model".to_owned()),
        FailureKind::OverBudget => {
            // With both budgets set, the failure says which one is exhausted.
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
