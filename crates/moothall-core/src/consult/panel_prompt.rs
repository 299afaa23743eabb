//! The requests to members of the panel, and the names that their cases must not contain.

use super::committee::{CommitteeMember, TOP_LEVEL};
use super::input::ConsultInput;
use super::state::ConsultState;
use crate::debate;
use crate::model::{
    CacheDuration, CallPurpose, ModelRequest, PromptBlock, PromptTurn, ReasoningEffort,
};
use crate::prompt_revision::PromptTemplate;
use crate::tokens_expected;
use crate::verdict::{CaseFile, FIELD_LIMITS, HiddenNames};

/// A text that is the same in all revisions and that users cannot replace: a panel whose rules a
/// committee file could change would not be blind.
macro_rules! fixed_text {
    ($name:literal) => {
        PromptTemplate {
            name: $name,
            purpose: "",
            v1: include_str!(concat!("prompts/", $name, ".md")),
            v2: include_str!(concat!("prompts/", $name, ".md")),
        }
    };
}

const PANEL: PromptTemplate = fixed_text!("panel");
const PANEL_LENS: PromptTemplate = fixed_text!("panel_lens");
const WORD_LIMITS: PromptTemplate = fixed_text!("word_limits");

/// Tokens of a case with a full debate record.
pub(crate) const CASE_TOKENS: u64 = 2_400;

/// Asks a member to score one case. The dossier is the same cached prefix as in debates; rules and
/// lens are the same for all cases of a member.
pub(crate) fn score_case(
    input: &ConsultInput,
    known: &ConsultState,
    member: &CommitteeMember,
    case: &CaseFile,
) -> ModelRequest {
    let metrics = &input.committee.metrics;
    let dossier = known.dossier.clone().unwrap_or_default();
    let ids: Vec<String> = metrics.iter().map(|metric| format!("`{}`", metric.id)).collect();
    let rules = PANEL.fill(
        known.prompts,
        &[
            ("company", &known.company()),
            ("top", &TOP_LEVEL.to_string()),
            ("metrics", &debate::describe_metrics(metrics)),
            ("metric_ids", &ids.join(", ")),
        ],
    );
    let lens = PANEL_LENS.fill(known.prompts, &[("lens", &member.lens)]);
    let system = [PromptBlock::new(dossier), PromptBlock::new(rules), PromptBlock::new(lens)];
    let models = input.panel_model(member);
    ModelRequest {
        model: models.first().clone(),
        fallbacks: models.fallbacks().to_vec(),
        purpose: CallPurpose::PanelScore,
        system: system.map(|block| block.cached(CacheDuration::FiveMinutes)).into(),
        turns: vec![PromptTurn::user(case.text.clone())],
        max_tokens: input.calls.message_tokens,
        temperature: input.calls.temperature,
        // As for the decision makers: thinking is billed as output.
        effort: Some(ReasoningEffort::Low),
        schema: Some(debate::baseline::schema(&input.calls, metrics)),
        timeout_ms: input.calls.timeout_ms,
    }
}

/// Tells analysts how much of a move the panel reads.
pub(crate) fn word_limits() -> String {
    let limits = &FIELD_LIMITS;
    let number = |number: usize| number.to_string();
    WORD_LIMITS.fill(
        crate::PromptRevision::CURRENT,
        &[
            ("title", &number(limits.title)),
            ("thesis", &number(limits.thesis)),
            ("action", &number(limits.actions.words)),
            ("actions", &number(limits.actions.items)),
            ("condition", &number(limits.conditions.words)),
            ("conditions", &number(limits.conditions.items)),
            ("risk", &number(limits.risks.words)),
            ("risks", &number(limits.risks.items)),
            ("cost", &number(limits.cost)),
            ("horizon", &number(limits.horizon)),
            ("criterion", &number(limits.kill_criteria.words)),
            ("criteria", &number(limits.kill_criteria.items)),
            ("evidence", &number(limits.evidence)),
        ],
    )
}

/// Tokens of the rules and the longest lens, without the metrics.
pub(crate) fn rules_tokens(input: &ConsultInput) -> u64 {
    let lenses = input.committee.panel.iter().map(|member| tokens_expected(&member.lens));
    tokens_expected(PANEL.v2) + lenses.max().unwrap_or(0)
}

/// The names of people and models that speak before the panel. Panel members are not among them:
/// no speaker of a debate knows them.
pub(crate) fn hidden_names(input: &ConsultInput) -> HiddenNames {
    let mut hidden = HiddenNames::default();
    let committee = &input.committee;
    let mut hide = |members: &[CommitteeMember], replacement: &'static str| {
        for member in members {
            hidden.hide_word(&member.id, replacement);
            // A name of one word may be an ordinary word, so only its exact spelling is a name.
            match member.name.contains(' ') {
                true => hidden.hide_phrase(&member.name, replacement),
                false => hidden.hide_word(&member.name, replacement),
            }
        }
    };
    hide(&committee.decision_makers, "the defence");
    hide(std::slice::from_ref(&committee.critic), "the other side");
    hide(&committee.analysts, "the author");
    for model in input.distinct_models() {
        let full = model.to_string();
        hidden.hide_phrase(&full, "a model");
        if let Some((_, short)) = full.split_once('/') {
            hidden.hide_phrase(short, "a model");
        }
    }
    hidden
}
