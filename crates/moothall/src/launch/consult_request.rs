//! A consultation as it is asked for, and the run that follows from it.

use std::path::Path;

use moothall_core::ErrorCode;
use moothall_core::consult::{
    Committee, ConsultInput, GatherRequest, InvalidConsult, InvalidTerms, RoleModels, Terms,
};
use moothall_core::debate::Calls;
use moothall_core::model::ModelName;
use moothall_core::{ConsultSpec, IsolationChoice, NewsChoice, RunSettings};
use moothall_sources::DocumentFolder;

use super::estimate::{Bill, Cap};
use super::set_budget;
use crate::args::{ConsultArgs, RoleModel, RoleName, Subject};
use crate::commands::committee;
use crate::context::Context;
use crate::error::CliError;
use crate::filings::news_source;
use crate::{files, user_input};

/// The window of a model that no table lists. A prompt that is too long fails or is cut; one that is
/// summarised too early only loses words.
const UNKNOWN_WINDOW: u32 = 32_768;

/// A consultation as a command or an HTTP request asks for it. Files are read; models are not looked up yet.
#[derive(Debug)]
pub(crate) struct ConsultRequest {
    pub(crate) gather: GatherRequest,
    pub(crate) committee: Committee,
    pub(crate) moves: Option<u32>,
    pub(crate) model: Option<ModelName>,
    pub(crate) role_models: Vec<RoleModel>,
    pub(crate) accept_findings: bool,
    pub(crate) terms: Terms,
    pub(crate) settings: RunSettings,
}

/// A consultation that can be started, and its cost.
pub(crate) struct ConsultPlan {
    pub(crate) spec: ConsultSpec,
    pub(crate) bill: Bill,
    pub(crate) cap: Cap,
}

impl ConsultRequest {
    /// What `moothall consult` is asked for.
    pub(crate) fn from_args(args: &ConsultArgs) -> Result<Self, CliError> {
        let mut committee = committee::find(args.committee.as_deref())?;
        if let Some(rounds) = args.rounds {
            committee.rounds = rounds;
        }
        let Subject { ticker, name, source, folder } = args.subject()?;
        let moves = args.add_moves.as_deref().map(user_input::moves).transpose()?;
        Ok(Self {
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
            model: args.model.clone(),
            role_models: args.model_for.clone(),
            accept_findings: args.accept_findings,
            terms: Terms {
                brief: args.brief.as_deref().map(user_input::brief).transpose()?,
                moves: moves.unwrap_or_default(),
                pause_after_moves: args.pause_after.is_some(),
                do_nothing: true,
                baseline: args.baseline,
            },
            settings: RunSettings {
                restate: args.engine.restate(),
                isolation: args.isolation.map(IsolationChoice::from),
                allow_shared_kernel: args.allow_shared_kernel,
                parallel_moves: Some(args.parallel_moves),
                budget_micro_usd: args.budget,
                budget_tokens: args.budget_tokens,
                base_url: args.base_url.clone(),
                offline: files::whole(args.evidence.offline.as_deref())?,
                record: files::whole(args.replies.record.as_deref())?,
                replay: files::whole(args.replies.replay.as_deref())?,
                memo: files::whole(args.memo.as_deref())?,
                artifacts: files::whole(args.artifacts.as_deref())?,
                documents: files::whole(folder)?,
                news: match &args.news {
                    Some(NewsChoice::File(path)) => files::whole(Some(path))?.map(NewsChoice::File),
                    other => other.clone(),
                },
                output: None,
            },
        })
    }

    /// The configuration that holds for it.
    pub(crate) fn context(&self, config: Option<&Path>) -> Result<Context, CliError> {
        super::context(config, &self.settings, self.model.as_ref())
    }

    /// Chooses the models and the budget.
    pub(crate) fn plan(self, context: &Context) -> Result<ConsultPlan, CliError> {
        let models = self.models(context)?;
        let Self { gather, committee, moves, accept_findings, terms, mut settings, .. } = self;
        let calls = calls(context, &models);
        let input =
            ConsultInput { gather, committee, moves, models, calls, accept_findings, terms };
        input.validate().map_err(refusal)?;
        let bill = Bill::of(&context.catalog, &input);
        let cap = bill.cap(context.budget());
        set_budget(&mut settings, cap.budget());
        Ok(ConsultPlan { spec: ConsultSpec { input, settings }, bill, cap })
    }

    fn models(&self, context: &Context) -> Result<RoleModels, CliError> {
        // Without a default model, every role may have one of its own.
        let default = match (&self.model, self.role_models.as_slice()) {
            (None, [only, ..]) if self.names_every_role() => only.model.clone(),
            (named, _) => context.model(named.as_ref())?,
        };
        let mut models = RoleModels::all(default);
        for one in &self.role_models {
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

    fn names_every_role(&self) -> bool {
        [RoleName::Inference, RoleName::Analyst, RoleName::Critic, RoleName::DecisionMaker]
            .iter()
            .all(|role| self.role_models.iter().any(|one| one.role == *role))
    }
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

fn refusal(error: InvalidConsult) -> CliError {
    let refused = CliError::usage(error.to_string());
    match error {
        InvalidConsult::Ticker(_) => refused
            .with_hint("write it as it is listed, such as AAPL or BRK-B")
            .with_code(ErrorCode::BadTicker),
        InvalidConsult::Moves { .. } => {
            refused.with_hint("a committee of your own may propose more: `moothall committee new`")
        }
        InvalidConsult::Terms(InvalidTerms::Brief(_)) => {
            refused.with_hint("write it shorter, in plain text: a question, goals, constraints")
        }
        InvalidConsult::Window(_) => {
            refused.with_hint("choose another model, or correct its row in a catalog file")
        }
        _ => refused,
    }
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
