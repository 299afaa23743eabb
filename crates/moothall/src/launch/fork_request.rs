//! Converts a request to fork a consultation to a run spec and the journal that it starts with.

use std::path::Path;

use moothall_core::consult::{
    Committee, ConsultInput, EvidenceSource, ForkFault, ForkPoint, ForkRequest, ReviewAction,
    ReviewChange, RoleModels, VerdictConflict, VerdictRequest, fork,
};
use moothall_core::debate::CallSettings;
use moothall_core::evidence::Evidence;
use moothall_core::model::{ModelList, ModelName};
use moothall_core::receipt::{EffectRecord, EffectTiming};
use moothall_core::{ConsultSpec, EffectId, EffectResult, ErrorCode, RunSettings};
use moothall_engine::{Consultation, RunRecord};
use moothall_server::dto::ForkRunRequest;
use moothall_store::{JournalEntry, RunRow, now_ms};

use super::consult_request::{
    calls_of, debated_moves, member_refusal, refusal as input_refusal, spend_limit, verdict_refusal,
};
use super::estimate::CostEstimate;
use super::http_request::{
    field_refusal, find_committee, parse_budget, parse_model_list, verdict_of,
};
use super::{ConsultPlan, RunFiles, ServerDefaults, set_budget, unreadable_consultation};
use crate::args::{ForkArgs, ForkSetting, MemberModel};
use crate::commands::committee;
use crate::config::LoadedConfig;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::judge_files::JudgeFileSource;
use crate::{display, files, run_store, user_input};

/// A fork requested by a command or over HTTP. Files have been read.
#[derive(Debug)]
pub(crate) struct ConsultForkRequest {
    from: ForkPoint,
    model: Option<ModelList>,
    set: Vec<ForkSetting>,
    committee: Committee,
    judge_file: JudgeFileSource,
    brief: Option<String>,
    edits: Vec<ReviewChange>,
    settings: RunSettings,
}

/// A fork that can be started.
pub(crate) struct ForkPlan {
    pub(crate) plan: ConsultPlan,
    pub(crate) inherited: Vec<(EffectId, JournalEntry)>,
}

impl ForkPlan {
    /// The evidence that the fork inherits. Synthetic evidence is not shown before a run.
    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        let is_synthetic = self.plan.spec.input.gather.source == EvidenceSource::Synthetic;
        let gathered = self.inherited.iter().find_map(|(_, entry)| match &entry.result {
            EffectResult::Gathered(evidence) => Some(&**evidence),
            _ => None,
        });
        gathered.filter(|_| !is_synthetic)
    }
}

impl ConsultForkRequest {
    pub(crate) fn from_args(
        args: &ForkArgs,
        loaded: &LoadedConfig,
        parent: &RunRow,
    ) -> Result<Self, CliError> {
        let spec = consultation(parent)?;
        let mut edits = Vec::new();
        for edit in &args.edit_move {
            let by = user_input::user_name(loaded, args.by.as_deref(), "edits the move")?;
            let (proposal, _) = user_input::one_move(&edit.file)?;
            let what = ReviewAction::Edit { move_id: edit.move_id.clone(), proposal };
            edits.push(ReviewChange { by, at_ms: now_ms(), what });
        }
        let inherited = inherited_settings(spec, args.model.as_ref().map(ModelList::first));
        let chosen = args.committee.as_deref().map(|name| committee::find(Some(name)));
        let verdict = args.verdict.request();
        let committee = committee_of(spec, chosen.transpose()?, args.model.as_ref(), verdict);
        Ok(Self {
            from: args.from.into(),
            model: args.model.clone(),
            set: args.set.clone(),
            committee: committee.map_err(verdict_refusal)?,
            judge_file: args.verdict.judge_file(),
            brief: args.brief.as_deref().map(user_input::brief).transpose()?,
            edits,
            settings: RunSettings {
                restate: match &args.runner {
                    Some(runner) => runner.restate(),
                    None => inherited.restate.clone(),
                },
                budget_micro_usd: args.budget,
                budget_tokens: args.budget_tokens,
                base_url: args.base_url.clone().or_else(|| inherited.base_url.clone()),
                record: files::absolute_path(args.replies.record.as_deref())?,
                replay: files::absolute_path(args.replies.replay.as_deref())?,
                memo: files::memo_path(args.output.memo.as_deref())?,
                artifacts: files::absolute_path(args.output.artifacts.as_deref())?,
                ..inherited
            },
        })
    }

    /// Converts the body of `POST /api/runs/{run}/fork`. `by` is the author of edited moves.
    pub(crate) fn from_http(
        request: ForkRunRequest,
        defaults: &ServerDefaults,
        parent: &RunRow,
        by: &str,
    ) -> Result<Self, CliError> {
        let spec = consultation(parent)?;
        let set = request.set.iter().map(|(key, value)| {
            format!("{key}={value}").parse::<ForkSetting>().map_err(|why: String| {
                CliError::usage(format!("invalid setting `{}`", display::line(key)))
                    .with_hint(why)
                    .with_code(ErrorCode::BadRequest)
            })
        });
        let edits = request.edits.into_iter().map(|edit| ReviewChange {
            by: by.to_owned(),
            at_ms: now_ms(),
            what: ReviewAction::Edit { move_id: edit.move_id, proposal: edit.proposal },
        });
        let model = request.model.as_deref().filter(|name| !name.is_empty());
        let model = model.map(parse_model_list).transpose()?;
        let inherited = inherited_settings(spec, model.as_ref().map(ModelList::first));
        let chosen = request.committee.as_deref().filter(|name| !name.is_empty());
        let chosen = chosen.map(|name| find_committee(Some(name), defaults)).transpose()?;
        let verdict = verdict_of(request.verdict, &request.panel, &request.again, request.repeat)?;
        let committee = committee_of(spec, chosen, model.as_ref(), verdict);
        let brief = request.brief.map(|brief| brief.replace("\r\n", "\n").trim().to_owned());
        Ok(Self {
            from: request.from,
            model,
            set: set.collect::<Result<_, _>>()?,
            committee: committee.map_err(field_refusal)?,
            judge_file: JudgeFileSource::ConfigFolder,
            brief: brief.filter(|brief| !brief.is_empty()),
            edits: edits.collect(),
            settings: RunSettings {
                restate: defaults.restate.clone(),
                budget_micro_usd: parse_budget(request.budget_usd.as_deref())?,
                ..inherited
            },
        })
    }

    pub(crate) fn context(
        &self,
        config: Option<&Path>,
        parent: &RunRow,
    ) -> Result<CommandContext, CliError> {
        let default = &consultation(parent)?.input.models.default;
        super::context(config, &self.settings, Some(self.model.as_ref().unwrap_or(default).first()))
    }

    /// Applies the changes to the parent's input and takes over its results.
    pub(crate) fn plan(
        self,
        context: &CommandContext,
        parent: &RunRecord,
    ) -> Result<ForkPlan, CliError> {
        let before = &consultation(&parent.row)?.input;
        // Refuses a run that only the version that executed it can read.
        Consultation::of(parent).transpose().map_err(unreadable_consultation)?;
        let Self { from, model, set, committee, judge_file, brief, edits, mut settings } = self;
        let mut input = ConsultInput { committee, ..before.clone() };
        if brief.is_some() {
            input.terms.brief = brief;
        }
        if let Some(model) = model {
            input.models = models_from(from, model, &before.models);
            // Models of single members would take precedence.
            let roles =
                repeated_roles(from).map(|role| (role.to_owned(), input.models.default.clone()));
            input
                .models
                .assign(&mut input.committee, &roles.collect::<Vec<_>>())
                .map_err(member_refusal)?;
        }
        apply(&mut input, set)?;
        let called = input.models_from(Some(from));
        called.into_iter().try_for_each(|model| context.refuse_unknown_model(model))?;
        apply_judge_file(context, &judge_file, before, &mut input)?;
        let possible = calls_of(context, &input.models_from(Some(from)));
        let documents = match from {
            ForkPoint::Moves => calls_of(context, &input.analyst_models()).document_tokens,
            ForkPoint::Debates => before.calls.document_tokens,
        };
        input.calls = calls_within(&before.calls, &possible, documents);
        let run_id = parent.row.run_id.clone();
        let request = ForkRequest { parent: run_id, from, input, edits };
        let forked = fork(before, &parent.effects(), request)
            .map_err(|fault| refusal(fault, &parent.row))?;
        let inherited = forked.effects.into_iter().map(|(id, effect)| {
            let EffectRecord { request_sha256, result } = effect;
            // The fork waited for none of them.
            let timing = EffectTiming { latency_ms: 0, tries: 0 };
            (id, JournalEntry { request_sha256, result, timing })
        });
        let inherited = inherited.collect();
        let estimate = CostEstimate::of(&context.catalog, &forked.input, None);
        let cap = spend_limit(context, &estimate)?;
        set_budget(&mut settings, cap.budget());
        let spec = ConsultSpec { input: forked.input, settings };
        Ok(ForkPlan {
            plan: ConsultPlan { spec, estimate, cap, files: RunFiles::default() },
            inherited,
        })
    }
}

/// Applies the settings of `--set`.
fn apply(input: &mut ConsultInput, settings: Vec<ForkSetting>) -> Result<(), CliError> {
    let mut models = Vec::new();
    for setting in settings {
        match setting {
            ForkSetting::Model(MemberModel { member, model }) => {
                models.push((member, model));
            }
            ForkSetting::Rounds(rounds) => input.committee.rounds = rounds,
        }
    }
    if let Some(plan) = &mut input.committee.verdict {
        plan.rounds_again = plan.rounds_again.min(input.committee.rounds);
    }
    input.models.assign(&mut input.committee, &models).map_err(member_refusal)
}

/// The committee of a fork: the chosen one or that of the parent, with the requested verdict. A
/// committee that says nothing about the verdict takes that of the parent.
fn committee_of(
    parent: &ConsultSpec,
    chosen: Option<Committee>,
    model: Option<&ModelList>,
    verdict: VerdictRequest,
) -> Result<Committee, VerdictConflict> {
    let before = &parent.input;
    let says_verdict = |one: &Committee| one.verdict.is_some() || !one.panel.is_empty();
    let is_new = chosen.as_ref().is_some_and(says_verdict) || verdict != VerdictRequest::default();
    let mut committee = chosen.unwrap_or_else(|| before.committee.clone());
    if !says_verdict(&committee) {
        committee.verdict.clone_from(&before.committee.verdict);
        committee.panel = committee.with_free_ids(before.committee.panel.clone());
    }
    if model.is_some() {
        // Members without a model of their own use the new one.
        committee.panel.iter_mut().for_each(|member| member.model = None);
    }
    if is_new {
        let moves = debated_moves(&committee, before.moves, before.terms.moves.len());
        committee.request_verdict(&VerdictRequest { moves: Some(moves), ..verdict })?;
    }
    Ok(committee)
}

/// Measured errors are those of the panel's models, so another panel needs others.
fn apply_judge_file(
    context: &CommandContext,
    judge_file: &JudgeFileSource,
    before: &ConsultInput,
    input: &mut ConsultInput,
) -> Result<(), CliError> {
    let is_same_panel = input.panel_model_names() == before.panel_model_names();
    let measured =
        |input: &ConsultInput| input.committee.verdict.as_ref().and_then(|plan| plan.allowances);
    let is_default = *judge_file == JudgeFileSource::ConfigFolder;
    if is_default && is_same_panel && measured(input) == measured(before) {
        return Ok(());
    }
    if let Some(plan) = &mut input.committee.verdict {
        plan.allowances = None;
    }
    judge_file.apply(&context.loaded, input)
}

/// The roles of the stages that a fork executes again.
fn repeated_roles(from: ForkPoint) -> impl Iterator<Item = &'static str> {
    let analyst = (from == ForkPoint::Moves).then_some("analyst");
    analyst.into_iter().chain(["critic", "decision-maker"])
}

/// One model for every role after the fork point; the roles before it keep theirs.
fn models_from(from: ForkPoint, model: ModelList, before: &RoleModels) -> RoleModels {
    let analyst = (from == ForkPoint::Debates).then(|| before.analyst().clone());
    let inference = Some(before.inference().clone());
    RoleModels { inference, analyst, ..RoleModels::all(model) }
}

/// The parent's call settings, reduced to what the models of the fork support. Only analysts write
/// documents, so only their model limits `documents`: a smaller limit changes inherited requests.
fn calls_within(before: &CallSettings, possible: &CallSettings, documents: u32) -> CallSettings {
    CallSettings {
        message_tokens: before.message_tokens.min(possible.message_tokens),
        document_tokens: before.document_tokens.min(documents),
        window_tokens: before.window_tokens.min(possible.window_tokens),
        ..before.clone()
    }
}

/// The parent's settings without its budget, recordings and output files. Its base URL belongs to the
/// provider of its model: another provider's key is never sent there.
fn inherited_settings(parent: &ConsultSpec, model: Option<&ModelName>) -> RunSettings {
    let provider = parent.input.models.default.first().provider();
    let is_same_provider = model.is_none_or(|model| model.provider() == provider);
    let ConsultSpec { settings: parent, .. } = parent;
    RunSettings {
        base_url: parent.base_url.clone().filter(|_| is_same_provider),
        budget_micro_usd: None,
        budget_tokens: None,
        record: None,
        replay: None,
        memo: None,
        artifacts: None,
        output: None,
        ..parent.clone()
    }
}

fn consultation(parent: &RunRow) -> Result<&ConsultSpec, CliError> {
    super::read_spec(&parent.spec)?;
    parent.spec.consult().ok_or_else(|| {
        CliError::usage(format!(
            "run {} cannot be forked because it is not a consultation",
            parent.run_id
        ))
        .with_hint("start a new run instead; `moothall runs` lists the consultations")
    })
}

fn refusal(fault: ForkFault, parent: &RunRow) -> CliError {
    let id = run_store::short_id(&parent.run_id);
    let refused = CliError::usage(display::line(&fault.to_string()));
    match fault {
        ForkFault::Input(error) => input_refusal(error),
        ForkFault::NotReached { .. } if parent.state.is_terminal() => {
            refused.with_hint("start a new consultation with `moothall consult`")
        }
        ForkFault::NotReached { .. } => {
            refused.with_hint(format!("continue it first with `moothall resume {id}`"))
        }
        ForkFault::Altered { possible: Some(earlier), .. } => {
            refused.with_hint(format!("use `--from {earlier}`, or change only later stages"))
        }
        ForkFault::Altered { possible: None, .. } => refused.with_hint(
            "change only later stages, or start a new consultation with `moothall consult`",
        ),
        ForkFault::EditFromMoves => {
            refused.with_hint("use `--from debates` to edit moves before they are debated again")
        }
        ForkFault::UnknownMove { known, .. } => {
            refused.with_hint(display::line(&format!("available moves: {}", known.join(", "))))
        }
        ForkFault::Edit(_) => {
            refused.with_hint("see `moothall moves --help` for an example of a move")
        }
        ForkFault::Journal(_) => {
            refused.with_hint("another version of moothall may have executed the run")
        }
    }
}
