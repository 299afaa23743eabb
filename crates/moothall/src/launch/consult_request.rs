//! Converts a request for a consultation to a run spec.

use std::collections::BTreeMap;
use std::path::Path;

use moothall_core::ErrorCode;
use moothall_core::consult::{
    Committee, ConsultInput, ConsultOptions, EvidenceSource, GatherRequest, InvalidConsult,
    InvalidConsultOptions, MemberModelError, RoleModels, VerdictConflict, VerdictRequest,
};
use moothall_core::debate::CallSettings;
use moothall_core::model::{ModelList, ModelName};
use moothall_core::sandbox::FileRef;
use moothall_core::{ConsultSpec, IsolationChoice, NewsChoice, RunSettings};
use moothall_sources::DocumentFolder;

use super::estimate::{CostEstimate, FallbackCost, SpendLimit};
use super::{RunFiles, max_output, set_budget};
use crate::args::{ConsultArgs, ConsultSubject};
use crate::commands::committee;
use crate::context::{CommandContext, parse_models};
use crate::error::CliError;
use crate::evidence_sources::news_source;
use crate::judge_files::JudgeFileSource;
use crate::{files, user_input};

/// Context window of unlisted models. Deliberately low: a prompt that is too long fails or is cut,
/// while an early summary only loses detail.
const UNKNOWN_WINDOW: u32 = 32_768;

/// A consultation requested by a command or over HTTP. Files have been read; models are not looked
/// up yet.
#[derive(Debug)]
pub(crate) struct ConsultRequest {
    pub(crate) gather: GatherRequest,
    pub(crate) committee: Committee,
    pub(crate) moves: Option<u32>,
    pub(crate) model: Option<ModelList>,
    /// Models by role or member.
    pub(crate) member_models: Vec<(String, ModelList)>,
    pub(crate) accept_findings: bool,
    pub(crate) terms: ConsultOptions,
    pub(crate) settings: RunSettings,
    /// Files that were sent with the request.
    pub(crate) files: RunFiles,
    /// Where measured errors of the panel's models come from.
    pub(crate) judge_file: JudgeFileSource,
}

/// A consultation that can be started, with its estimated cost.
pub(crate) struct ConsultPlan {
    pub(crate) spec: ConsultSpec,
    pub(crate) files: RunFiles,
    pub(crate) estimate: CostEstimate,
    pub(crate) cap: SpendLimit,
}

impl ConsultRequest {
    pub(crate) fn from_args(args: &ConsultArgs) -> Result<Self, CliError> {
        let mut committee = committee::find(args.committee.as_deref())?;
        if let Some(rounds) = args.rounds {
            committee.rounds = rounds;
        }
        let ConsultSubject { ticker, name, source, folder } = args.subject()?;
        let moves = args.add_moves.as_deref().map(user_input::moves).transpose()?;
        let moves = moves.unwrap_or_default();
        let debated = debated_moves(&committee, args.moves, moves.len());
        let verdict = VerdictRequest { moves: Some(debated), ..args.verdict.request() };
        committee.request_verdict(&verdict).map_err(verdict_refusal)?;
        Ok(Self {
            gather: GatherRequest {
                ticker: ticker.unwrap_or_default().trim().to_ascii_uppercase(),
                source,
                as_of: args.evidence.as_of,
                allow_stale: args.evidence.allow_stale,
                name: name.map(str::to_owned),
                documents: folder.map(label).transpose()?,
                news: args.news.as_ref().map(news_label).transpose()?,
            },
            committee,
            moves: args.moves,
            model: args.model.clone(),
            member_models: args.member_models(),
            accept_findings: args.accept_findings,
            terms: ConsultOptions {
                brief: args.brief.as_deref().map(user_input::brief).transpose()?,
                moves,
                pause_after_moves: args.pause_after.is_some(),
                do_nothing: true,
                baseline: args.baseline,
                calculations: args.calculations,
            },
            settings: RunSettings {
                restate: args.runner.restate(),
                isolation: args.isolation.map(IsolationChoice::from),
                allow_shared_kernel: args.allow_shared_kernel,
                parallel_moves: Some(args.parallel_moves),
                budget_micro_usd: args.budget,
                budget_tokens: args.budget_tokens,
                base_url: args.base_url.clone(),
                offline: files::absolute_path(args.evidence.offline.as_deref())?,
                record: files::absolute_path(args.replies.record.as_deref())?,
                replay: files::absolute_path(args.replies.replay.as_deref())?,
                memo: files::memo_path(args.output.memo.as_deref())?,
                artifacts: files::absolute_path(args.output.artifacts.as_deref())?,
                documents: files::absolute_path(folder)?,
                uploads: BTreeMap::new(),
                news: match &args.news {
                    Some(NewsChoice::File(path)) => {
                        files::absolute_path(Some(path))?.map(NewsChoice::File)
                    }
                    other => other.clone(),
                },
                output: None,
                trace_parent: None,
            },
            files: RunFiles::default(),
            judge_file: args.verdict.judge_file(),
        })
    }

    pub(crate) fn context(&self, config: Option<&Path>) -> Result<CommandContext, CliError> {
        super::context(config, &self.settings, self.model.as_ref().map(ModelList::first))
    }

    /// Selects a model even if its key is missing.
    #[must_use]
    pub(crate) fn for_estimate(mut self, context: &CommandContext) -> Self {
        self.model = self.model.or_else(|| context.model_for_estimate());
        self
    }

    /// Selects the models and the budget.
    pub(crate) fn plan(self, context: &CommandContext) -> Result<ConsultPlan, CliError> {
        let Self { gather, mut committee, moves, accept_findings, terms, mut settings, .. } = self;
        let models = role_models(context, self.model, &self.member_models, &mut committee)?;
        let calls = CallSettings::default();
        let mut input = ConsultInput {
            gather,
            committee,
            moves,
            models,
            calls,
            accept_findings,
            terms,
            parent: None,
        };
        input.calls = calls_of(context, &input.distinct_models());
        self.judge_file.apply(&context.loaded, &mut input)?;
        input.validate().map_err(refusal)?;
        let evidence = evidence_tokens(&input.gather, &settings, &self.files)?;
        let estimate = CostEstimate::of(&context.catalog, &input, evidence);
        let cap = spend_limit(context, &estimate)?;
        set_budget(&mut settings, cap.budget());
        Ok(ConsultPlan { spec: ConsultSpec { input, settings }, files: self.files, estimate, cap })
    }
}

/// The length of the evidence in tokens, if it is here already: the user's own documents.
fn evidence_tokens(
    gather: &GatherRequest,
    settings: &RunSettings,
    files: &RunFiles,
) -> Result<Option<u64>, CliError> {
    if gather.source != EvidenceSource::Files || gather.news.is_some() {
        return Ok(None);
    }
    let folder = match &settings.documents {
        Some(path) => DocumentFolder::new(path.clone(), None),
        None => {
            let content = |(name, file): (&String, &FileRef)| {
                Ok((name.clone(), files.content(name, file)?.to_vec()))
            };
            DocumentFolder::in_memory(
                settings.uploads.iter().map(content).collect::<Result<_, CliError>>()?,
                None,
            )
        }
    };
    Ok(folder.text_tokens())
}

/// The spend limit of a run with this estimate.
pub(crate) fn spend_limit(
    context: &CommandContext,
    estimate: &CostEstimate,
) -> Result<SpendLimit, CliError> {
    let budget = context.budget();
    if budget.usd.is_some() && estimate.with_fallbacks == Some(FallbackCost::Unknown) {
        let message = "the run has a dollar budget, but the price of a fallback model is unknown";
        return Err(CliError::usage(message)
            .with_hint(
                "add its price to a catalog file, limit tokens with `--budget-tokens` instead, or \
                 choose another fallback",
            )
            .with_code(ErrorCode::BadModel));
    }
    Ok(estimate.cap(budget))
}

/// The models by role. A member's model becomes part of the committee, which is stored with the run.
fn role_models(
    context: &CommandContext,
    default: Option<ModelList>,
    named: &[(String, ModelList)],
    committee: &mut Committee,
) -> Result<RoleModels, CliError> {
    let roles = match &default {
        // A flag overrides the configuration.
        Some(_) => RoleChoices::default(),
        None => RoleChoices::configured(context)?,
    };
    let used = named.iter().map(|(_, models)| models).chain(committee.own_models());
    let used = used.chain(roles.iter());
    used.flat_map(ModelList::iter).try_for_each(|model| context.refuse_unknown_model(model))?;
    let first = named.iter().map(|(_, models)| models).chain(committee.own_models());
    let first = first.chain(roles.iter()).next().cloned();
    let configured = || {
        let models = context.model(default.as_ref())?;
        let mut fallbacks = models.fallbacks().iter();
        fallbacks.try_for_each(|model| context.refuse_unknown_model(model))?;
        Ok(models)
    };
    let mut models = match first {
        Some(first) => RoleModels::all(first),
        None => return configured().map(RoleModels::all),
    };
    let RoleChoices { inference, analyst, critic, decision_maker } = roles;
    models = RoleModels { inference, analyst, critic, decision_maker, ..models };
    models.assign(committee, named).map_err(member_refusal)?;
    // No default model is needed if every member has its own.
    if default.is_some() || models.needs_default(committee) {
        models.default = configured()?;
    } else if committee.panel.iter().any(|member| member.model.is_none())
        && let Ok(found) = configured()
    {
        // Without a default model, the panel uses the first of the members' models.
        models.default = found;
    }
    Ok(models)
}

/// The models of the section `[models]`.
#[derive(Debug, Default)]
struct RoleChoices {
    inference: Option<ModelList>,
    analyst: Option<ModelList>,
    critic: Option<ModelList>,
    decision_maker: Option<ModelList>,
}

impl RoleChoices {
    fn configured(context: &CommandContext) -> Result<Self, CliError> {
        let section = &context.loaded.resolved.config.models;
        let parse = |models: &Option<_>| models.as_ref().map(parse_models).transpose();
        Ok(Self {
            inference: parse(&section.inference)?,
            analyst: parse(&section.analyst)?,
            critic: parse(&section.critic)?,
            decision_maker: parse(&section.decision_maker)?,
        })
    }

    fn iter(&self) -> impl Iterator<Item = &ModelList> {
        let Self { inference, analyst, critic, decision_maker } = self;
        [inference, analyst, critic, decision_maker].into_iter().flatten()
    }
}

pub(crate) fn member_refusal(error: MemberModelError) -> CliError {
    let refused = CliError::usage(error.to_string()).with_code(ErrorCode::BadModel);
    match error {
        MemberModelError::Unknown { known, .. } => {
            refused.with_hint(format!("roles and members: {}", known.join(", ")))
        }
        _ => refused.with_hint("give each role and each member one model"),
    }
}

/// How many moves a run debates: those of the analysts and those that the user adds.
pub(crate) fn debated_moves(committee: &Committee, requested: Option<u32>, added: usize) -> u32 {
    let proposed: u32 = committee.shares(requested).iter().sum();
    proposed.saturating_add(u32::try_from(added).unwrap_or(u32::MAX))
}

pub(crate) fn verdict_refusal(conflict: VerdictConflict) -> CliError {
    let hint = match conflict {
        VerdictConflict::NoPanel => {
            "use `--verdict full`, or omit `--again`, `--panel` and `--repeat`"
        }
        VerdictConflict::NoRepeats => "use `--verdict full`, or omit `--again`",
    };
    CliError::usage(conflict.to_string()).with_hint(hint)
}

/// The name of a source of news that is not an uploaded file.
fn news_label(news: &NewsChoice) -> Result<String, CliError> {
    Ok(news_source(news, &RunFiles::default())?.label())
}

/// The name of a directory, resolved because `.` has none.
fn label(folder: &Path) -> Result<String, CliError> {
    let cannot = |error: std::io::Error| {
        let message = format!("cannot read the directory `{}`", folder.display());
        CliError::usage(message).with_source(error)
    };
    let canonical = fs_err::canonicalize(folder).map_err(cannot)?;
    if !canonical.is_dir() {
        return Err(CliError::usage(format!("`{}` is not a directory", folder.display())));
    }
    Ok(DocumentFolder::label(&canonical))
}

pub(crate) fn refusal(error: InvalidConsult) -> CliError {
    let refused = CliError::usage(error.to_string());
    match error {
        InvalidConsult::Ticker(_) => refused
            .with_hint("use the ticker as listed, such as AAPL or BRK-B")
            .with_code(ErrorCode::BadTicker),
        InvalidConsult::Name => refused.with_hint("shorten the name").with_code(ErrorCode::BadName),
        InvalidConsult::NothingFiled => refused
            .with_hint("name an unlisted company and add documents about it")
            .with_code(ErrorCode::BadName),
        InvalidConsult::Moves { .. } => {
            refused.with_hint("a custom committee can propose more: `moothall committee new`")
        }
        InvalidConsult::ConsultOptions(InvalidConsultOptions::Brief(_)) => {
            refused.with_hint("use a shorter plain text: a question, goals, constraints")
        }
        InvalidConsult::OwnPrompts(_) => {
            refused.with_hint("shorten your prompts, or choose models with a larger context window")
        }
        InvalidConsult::Window(_) => {
            refused.with_hint("choose another model, or correct its entry in the catalog file")
        }
        _ => refused,
    }
}

/// Call options that all models support.
pub(crate) fn calls_of(context: &CommandContext, models: &[&ModelName]) -> CallSettings {
    let defaults = CallSettings::default();
    let card = |model: &&ModelName| context.catalog.card(model);
    let cards: Vec<_> = models.iter().map(card).collect();
    let window = |card: &moothall_models::catalog::ModelCard| match card.context {
        Some(tokens) => u32::try_from(tokens).unwrap_or(u32::MAX),
        None if card.model.is_demo() => defaults.window_tokens,
        None => UNKNOWN_WINDOW,
    };
    let window_tokens = cards.iter().map(window).min().unwrap_or(defaults.window_tokens);
    let max_output_tokens = max_output(&cards);
    CallSettings {
        // A small window must also hold the evidence, a move and a few messages.
        message_tokens: defaults.message_tokens.min(max_output_tokens).min(window_tokens / 8),
        document_tokens: defaults.document_tokens.min(max_output_tokens).min(window_tokens / 3),
        window_tokens,
        ..defaults
    }
}
