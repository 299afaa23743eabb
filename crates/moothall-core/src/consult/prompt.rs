//! Prompts for the agents of the first three stages. The texts are files in `prompts/`.
//!
//! Analysts read the dossier first, as the critic and the decision makers do, so that all share one
//! cached prefix. Retries and rewrites append to the first request.

use super::committee::CommitteeMember;
use super::dossier;
use super::input::ConsultInput;
use super::panel_prompt;
use super::proposals;
use super::state::ConsultState;
use crate::RunFinding;
use crate::model::{
    CacheDuration, CallPurpose, ModelList, ModelRequest, PromptBlock, PromptTurn, ReasoningEffort,
};
use crate::prompt_revision::{PromptTemplate, PromptTexts, template};
use crate::text::{fenced, one_line};

/// Maximum number of findings shown to an author.
const MAX_PROBLEMS: usize = 12;

/// Approximate number of tokens per word of checked prose, including numbers and ids.
const TOKENS_PER_WORD: u64 = 4;

const FINANCIAL: PromptTemplate = template!("financial", "F1: reads the fact table");
const TREND: PromptTemplate = template!("trend", "F2: reads filing events and reports");
const FINANCIAL_DOCUMENTS: PromptTemplate =
    template!("financial_documents", "F1 without filings: reads the user's documents");
const TREND_DOCUMENTS: PromptTemplate =
    template!("trend_documents", "F2 without filings: reads the user's documents");
const ANALYST: PromptTemplate =
    template!("analyst", "an analyst: role, perspective and rules for moves");
const PROPOSE: PromptTemplate = template!("propose", "asks an analyst for moves");
const BRIEF: PromptTemplate = template!("brief", "adds the user's brief to the request for moves");
const REWRITE_DOCUMENT: PromptTemplate =
    template!("rewrite_document", "asks F1 or F2 to correct findings");
const REWRITE_MOVE: PromptTemplate =
    template!("rewrite_move", "asks an analyst to correct findings in a move");
const SYNTHESIZE_FINANCIALS: PromptTemplate =
    template!("synthesize_financials", "generates synthetic financial data");
const SYNTHESIZE_NEWS: PromptTemplate = template!("synthesize_news", "generates synthetic news");

/// The prompts of this module that users may replace.
pub(crate) const TEMPLATES: [PromptTemplate; 11] = [
    FINANCIAL,
    TREND,
    FINANCIAL_DOCUMENTS,
    TREND_DOCUMENTS,
    ANALYST,
    PROPOSE,
    BRIEF,
    REWRITE_DOCUMENT,
    REWRITE_MOVE,
    SYNTHESIZE_FINANCIALS,
    SYNTHESIZE_NEWS,
];

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
    let model = input.inference_model(purpose);
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
    request(input, input.inference_model(purpose), purpose, vec![instructions], turn)
}

/// Requests moves from an analyst.
pub(crate) fn propose(
    input: &ConsultInput,
    known: &ConsultState,
    analyst: &CommitteeMember,
    share: u32,
) -> ModelRequest {
    let dossier = known.dossier.clone().unwrap_or_default();
    let wanted = share;
    let share = if share == 1 { "1 move".to_owned() } else { format!("{share} moves") };
    let company = known.company();
    let example = if known.is_from_documents() { "U0:plan:3" } else { "F0:Revenue:FY2025" };
    let texts = input.texts();
    let persona = ANALYST.fill(
        texts,
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
    let brief = brief.map(|brief| BRIEF.fill(texts, &[("brief", &fenced(brief))]));
    let asked = PROPOSE.fill(texts, &[("share", &share), ("company", &company)]);
    let limits = input.committee.verdict.as_ref().map(|_| panel_prompt::word_limits());
    let turn = PromptTurn::user(asked + &limits.unwrap_or_default() + &brief.unwrap_or_default());
    let model = input.analyst_model(analyst);
    let mut request = request(input, model, CallPurpose::Analyst, system, turn);
    request.schema = Some(proposals::schema(texts.revision, wanted));
    request
}

/// Shows an author the findings in a document and requests a rewrite.
pub(crate) fn rewrite_document(
    texts: PromptTexts<'_>,
    first: &ModelRequest,
    answer: &str,
    findings: &[RunFinding],
) -> ModelRequest {
    let values = [("problems", &*problems(findings))];
    retry_request(first, answer, REWRITE_DOCUMENT.fill(texts, &values))
}

/// Shows an analyst the findings in one move of a reply and requests a rewrite of that move.
pub(crate) fn rewrite_move(
    texts: PromptTexts<'_>,
    first: &ModelRequest,
    answer: &str,
    place: usize,
    title: &str,
    findings: &[RunFinding],
) -> ModelRequest {
    let (number, title) = (place.to_string(), title.replace('"', "'"));
    let values = [("number", &*number), ("title", &*title), ("problems", &problems(findings))];
    let mut request = retry_request(first, answer, REWRITE_MOVE.fill(texts, &values));
    request.schema = Some(proposals::schema(texts.revision, 1));
    request
}

fn retry_request(first: &ModelRequest, answer: &str, question: String) -> ModelRequest {
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

fn written(template: PromptTemplate, input: &ConsultInput, known: &ConsultState) -> String {
    let tokens = dossier::reading_tokens(input.calls.window_tokens);
    let words = (tokens / TOKENS_PER_WORD).max(40).to_string();
    let (company, cite) = (known.company(), dossier::citation_rules(known));
    let values = [("company", &*company), ("words", &*words), ("cite", &*cite)];
    template.fill(input.texts(), &values)
}

fn request(
    input: &ConsultInput,
    models: &ModelList,
    purpose: CallPurpose,
    system: Vec<PromptBlock>,
    turn: PromptTurn,
) -> ModelRequest {
    ModelRequest {
        model: models.first().clone(),
        fallbacks: models.fallbacks().to_vec(),
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
