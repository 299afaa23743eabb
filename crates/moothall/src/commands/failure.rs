//! What a person can do about a call that failed.

use moothall_core::model::{FailureKind, ModelFailure, ModelName};

use crate::context::Context;
use crate::error::{CliError, Exit};

/// The error of a failed call, with the cure where we know it.
pub(super) fn of_call(context: &Context, model: &ModelName, failure: &ModelFailure) -> CliError {
    let exit = match failure.kind {
        FailureKind::OverBudget => Exit::BudgetStopped,
        FailureKind::PriceUnknown => Exit::Usage,
        _ => Exit::Failed,
    };
    let error = CliError::new(exit, format!("{model} gave no answer ({failure})"));
    match hint(context, model, failure) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn hint(context: &Context, model: &ModelName, failure: &ModelFailure) -> Option<String> {
    let provider = context.catalog.provider(model.provider());
    let address = provider.map_or("", |provider| provider.base_url.as_str());
    match failure.kind {
        FailureKind::Auth => context.keys.hint(model.provider()).map(str::to_owned),
        FailureKind::RateLimited | FailureKind::Overloaded => Some("wait a little, or choose another model".to_owned()),
        FailureKind::Transport if model.provider() == "ollama" => {
            Some(format!("is Ollama running at {address}? start it with `ollama serve`"))
        }
        FailureKind::Transport => Some(format!("is {address} reachable from here?")),
        FailureKind::TimedOut => Some("allow more time with `--timeout`".to_owned()),
        FailureKind::ContextOverflow | FailureKind::ContextTruncated => Some("shorten the prompt, or choose a model with a larger window".to_owned()),
        FailureKind::BadRequest if failure.status == Some(404) => Some("is the model's name right? `moothall models` lists some".to_owned()),
        FailureKind::OverBudget => Some("raise `--budget`, or lower `--max-tokens`".to_owned()),
        FailureKind::PriceUnknown => {
            Some("add the model's price to a catalog file, or limit tokens with `--budget-tokens` instead".to_owned())
        }
        FailureKind::NotFound => Some("record it first with `--record DIR`".to_owned()),
        _ => None,
    }
}
