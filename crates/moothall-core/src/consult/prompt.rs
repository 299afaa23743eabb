//! Prompts for the agents of the first three stages. The texts are files in `prompts/`.
//!
//! Analysts read the dossier first, as the critic and the decision makers do, so that all share one
//! cached prefix. Retries and rewrites append to the first request.

use super::committee::CommitteeMember;
use super::dossier;
use super::input::ConsultInput;
use super::proposals;
use super::state::ConsultState;
use crate::RunFinding;
use crate::model::{
    CacheDuration, CallPurpose, ModelName, ModelRequest, PromptBlock, PromptTurn, ReasoningEffort,
};
use crate::text::{fenced, fill, one_line};

/// Maximum number of findings shown to an author.
const MAX_PROBLEMS: usize = 12;

/// Approximate number of tokens per word of checked prose, including numbers and ids.
const TOKENS_A_WORD: u64 = 4;

const FINANCIAL: &str = include_str!("prompts/financial.md");
const TREND: &str = include_str!("prompts/trend.md");
const FINANCIAL_DOCUMENTS: &str = include_str!("prompts/financial_documents.md");
const TREND_DOCUMENTS: &str = include_str!("prompts/trend_documents.md");
const ANALYST: &str = include_str!("prompts/analyst.md");
const PROPOSE: &str = include_str!("prompts/propose.md");
const BRIEF: &str = include_str!("prompts/brief.md");
const REWRITE_DOCUMENT: &str = include_str!("prompts/rewrite_document.md");
const REWRITE_MOVE: &str = include_str!("prompts/rewrite_move.md");
const SYNTHESIZE_FINANCIALS: &str = include_str!("prompts/synthesize_financials.md");
const SYNTHESIZE_NEWS: &str = include_str!("prompts/synthesize_news.md");

/// Maximum tokens of a reply that is a document. A second request must fit the evidence, the first
/// reply and another reply.
pub(crate) fn document_tokens(input: &ConsultInput) -> u32 {
    input.calls.document_tokens.min(input.calls.window_tokens / 5).max(1)
}

/// Requests synthetic data.
pub(crate) fn synthesize(
    input: &ConsultInput,
    known: &ConsultState,
    purpose: CallPurpose,
) -> ModelRequest {
    let template = if purpose == CallPurpose::SynthesizeNews {
        SYNTHESIZE_NEWS
    } else {
        SYNTHESIZE_FINANCIALS
    };
    let text = written(template, input, known);
    let model = input.models.inference();
    request(
        input,
        model,
        purpose,
        vec![PromptBlock::new(text)],
        PromptTurn::user(format!("Write it for {}.", known.company())),
    )
}

/// Requests F1 or F2.
pub(crate) fn infer(
    input: &ConsultInput,
    known: &ConsultState,
    purpose: CallPurpose,
) -> ModelRequest {
    let window = input.calls.window_tokens;
    let (template, evidence) = if purpose == CallPurpose::InferTrend {
        let template = if known.is_from_documents() { TREND_DOCUMENTS } else { TREND };
        (template, dossier::for_trend(known, window))
    } else {
        let template = if known.is_from_documents() { FINANCIAL_DOCUMENTS } else { FINANCIAL };
        (template, dossier::for_financial(known, window))
    };
    let instructions = PromptBlock::new(written(template, input, known));
    let mut turn = PromptTurn::user(evidence);
    turn.block = turn.block.cached(CacheDuration::FiveMinutes);
    request(input, input.models.inference(), purpose, vec![instructions], turn)
}

/// Requests moves from an analyst.
pub(crate) fn propose(
    input: &ConsultInput,
    known: &ConsultState,
    analyst: &CommitteeMember,
    share: u32,
) -> ModelRequest {
    let dossier = known.dossier.clone().unwrap_or_default();
    let share = if share == 1 { "1 move".to_owned() } else { format!("{share} moves") };
    let company = known.company();
    let example = if known.is_from_documents() { "U0:plan:3" } else { "F0:Revenue:FY2025" };
    let persona = fill(
        ANALYST,
        &[
            ("name", &analyst.name),
            ("company", &company),
            ("share", &share),
            ("lens", &analyst.lens),
            ("example", example),
        ],
    );
    let system = vec![
        PromptBlock::new(dossier).cached(CacheDuration::FiveMinutes),
        PromptBlock::new(persona).cached(CacheDuration::FiveMinutes),
    ];
    // After the dossier, whose bytes are the same for all agents, and in the turn that retries and
    // rewrites keep.
    let brief = input.terms.brief.as_deref();
    let brief = brief.map(|brief| fill(BRIEF, &[("brief", &fenced(brief))]));
    let asked = fill(PROPOSE, &[("share", &share), ("company", &company)]);
    let turn = PromptTurn::user(asked + &brief.unwrap_or_default());
    let mut request = request(input, input.models.analyst(), CallPurpose::Analyst, system, turn);
    request.schema = Some(proposals::schema());
    request
}

/// Shows an author the findings in a document and requests a rewrite.
pub(crate) fn rewrite_document(
    first: &ModelRequest,
    answer: &str,
    findings: &[RunFinding],
) -> ModelRequest {
    again(first, answer, fill(REWRITE_DOCUMENT, &[("problems", &problems(findings))]))
}

/// Shows an analyst the findings in one move of a reply and requests a rewrite of that move.
pub(crate) fn rewrite_move(
    first: &ModelRequest,
    answer: &str,
    place: usize,
    title: &str,
    findings: &[RunFinding],
) -> ModelRequest {
    let (number, title) = (place.to_string(), title.replace('"', "'"));
    let values = [("number", &*number), ("title", &*title), ("problems", &problems(findings))];
    again(first, answer, fill(REWRITE_MOVE, &values))
}

fn again(first: &ModelRequest, answer: &str, question: String) -> ModelRequest {
    let mut request = first.clone();
    // Drops an unusable reply and the retry that followed it: the window is small, and they do not
    // help with the rewrite.
    request.turns.truncate(1);
    request.turns.push(PromptTurn::assistant(answer));
    request.turns.push(PromptTurn::user(question));
    request
}

/// Messages quote model output, so they are fenced as data.
fn problems(findings: &[RunFinding]) -> String {
    let shown = findings.iter().take(MAX_PROBLEMS);
    let mut list: String =
        shown.map(|finding| format!("- {}\n", one_line(&finding.message, 300))).collect();
    if findings.len() > MAX_PROBLEMS {
        list.push_str(&format!("- and {} more\n", findings.len() - MAX_PROBLEMS));
    }
    fenced(&list)
}

fn written(template: &str, input: &ConsultInput, known: &ConsultState) -> String {
    let tokens = dossier::reading_tokens(input.calls.window_tokens);
    let words = (tokens / TOKENS_A_WORD).max(40).to_string();
    let (company, cite) = (known.company(), dossier::how_to_cite(known));
    fill(template, &[("company", &company), ("words", &words), ("cite", &cite)])
}

fn request(
    input: &ConsultInput,
    model: &ModelName,
    purpose: CallPurpose,
    system: Vec<PromptBlock>,
    turn: PromptTurn,
) -> ModelRequest {
    ModelRequest {
        model: model.clone(),
        purpose,
        system,
        turns: vec![turn],
        max_tokens: document_tokens(input),
        temperature: input.calls.temperature,
        // Reasoning is billed as output, and code checks the result anyway.
        effort: Some(ReasoningEffort::Low),
        schema: None,
        timeout_ms: input.calls.timeout_ms,
    }
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
