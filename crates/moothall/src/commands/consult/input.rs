//! From flags and configuration to what the workflow is asked.

use std::path::Path;

use moothall_core::consult::{ConsultInput, GatherRequest, InvalidConsult, RoleModels, Terms};
use moothall_core::debate::Calls;
use moothall_core::model::ModelName;
use moothall_engine::DocumentFolder;

use crate::args::{ConsultArgs, RoleName, Subject};
use crate::commands::{committee, own_words};
use crate::context::Context;
use crate::error::CliError;
use crate::filings::news_source;

/// The window of a model that no table lists. A prompt that is too long fails or is cut; one that is
/// summarised too early only loses words.
const UNKNOWN_WINDOW: u32 = 32_768;

/// What the flags ask for, or why it cannot be.
pub(super) fn input(context: &Context, args: &ConsultArgs) -> Result<ConsultInput, CliError> {
    let mut committee = committee::find(args.committee.as_deref())?;
    if let Some(rounds) = args.rounds {
        committee.rounds = rounds;
    }
    let models = models(context, args)?;
    let Subject { ticker, name, source, folder } = args.subject()?;
    let input = ConsultInput {
        gather: GatherRequest {
            ticker: ticker.unwrap_or_default().trim().to_ascii_uppercase(),
            source,
            as_of: args.evidence.as_of,
            allow_stale: args.evidence.allow_stale,
            name: name.map(str::to_owned),
            documents: folder.map(label).transpose()?,
            news: args.news.as_ref().map(|news| news_source(news).label()),
        },
        committee,
        moves: args.moves,
        calls: calls(context, &models),
        models,
        accept_findings: args.accept_findings,
        terms: terms(args)?,
    };
    input.validate().map_err(refusal)?;
    Ok(input)
}

/// What the user says beside ticker and committee. Doing nothing is scored in every run.
fn terms(args: &ConsultArgs) -> Result<Terms, CliError> {
    let moves = args.add_moves.as_deref().map(own_words::moves).transpose()?;
    Ok(Terms {
        brief: args.brief.as_deref().map(own_words::brief).transpose()?,
        moves: moves.unwrap_or_default(),
        pause_after_moves: args.pause_after.is_some(),
        do_nothing: true,
        baseline: args.baseline,
    })
}

/// What a folder is called. `.` has no name of its own.
fn label(folder: &Path) -> Result<String, CliError> {
    let cannot = |error: std::io::Error| {
        let words = format!("the folder `{}` cannot be read", folder.display());
        CliError::usage(words).with_source(error)
    };
    let whole = fs_err::canonicalize(folder).map_err(cannot)?;
    if !whole.is_dir() {
        return Err(CliError::usage(format!("`{}` is not a folder", folder.display())));
    }
    Ok(DocumentFolder::label(&whole))
}

pub(super) fn refusal(error: InvalidConsult) -> CliError {
    let refused = CliError::usage(error.to_string());
    match error {
        InvalidConsult::Ticker(_) => refused
            .with_hint("write it as it is listed, such as AAPL or BRK-B")
            .with_code("bad-ticker"),
        InvalidConsult::Moves { .. } => {
            refused.with_hint("a committee of your own may propose more: `moothall committee new`")
        }
        InvalidConsult::Brief(_) => {
            refused.with_hint("write it shorter, in plain text: a question, goals, constraints")
        }
        InvalidConsult::Window(_) => {
            refused.with_hint("choose another model, or correct its row in a catalog file")
        }
        _ => refused,
    }
}

fn models(context: &Context, args: &ConsultArgs) -> Result<RoleModels, CliError> {
    // Who has no model at all may have named one for every role.
    let default = match (&args.model, args.model_for.as_slice()) {
        (None, [only, ..]) if names_everyone(args) => only.model.clone(),
        (named, _) => context.model(named.as_ref())?,
    };
    let mut models = RoleModels::all(default);
    for one in &args.model_for {
        let (place, word) = match one.role {
            RoleName::Inference => (&mut models.inference, "inference"),
            RoleName::Analyst => (&mut models.analyst, "analyst"),
            RoleName::Critic => (&mut models.critic, "critic"),
            RoleName::DecisionMaker => (&mut models.decision_maker, "decision-maker"),
        };
        if place.replace(one.model.clone()).is_some() {
            return Err(CliError::usage(format!("`--model-for {word}=…` is given twice")));
        }
    }
    Ok(models)
}

fn names_everyone(args: &ConsultArgs) -> bool {
    [RoleName::Inference, RoleName::Analyst, RoleName::Critic, RoleName::DecisionMaker]
        .iter()
        .all(|role| args.model_for.iter().any(|one| one.role == *role))
}

/// How models are asked: what all of them can take.
fn calls(context: &Context, models: &RoleModels) -> Calls {
    let usual = Calls::default();
    let card = |model: &&ModelName| context.catalog.card(model);
    let cards: Vec<_> = models.distinct().iter().map(card).collect();
    let window = |card: &moothall_models::catalog::ModelCard| match card.context {
        Some(tokens) => u32::try_from(tokens).unwrap_or(u32::MAX),
        None if card.model.is_demo() => usual.window_tokens,
        None => UNKNOWN_WINDOW,
    };
    let window_tokens = cards.iter().map(window).min().unwrap_or(usual.window_tokens);
    let longest = cards.iter().filter_map(|card| card.max_output).min().unwrap_or(u32::MAX);
    Calls {
        // A small window must hold the evidence, a move and a few messages as well.
        message_tokens: usual.message_tokens.min(longest).min(window_tokens / 8),
        document_tokens: usual.document_tokens.min(longest).min(window_tokens / 3),
        window_tokens,
        ..usual
    }
}
