//! What the agents of the first three layers are told. The texts are files in `prompts/`.
//!
//! Analysts read the dossier first, as critic and decision makers do, so that all of them share one
//! cached prefix. A second question of any kind appends to the first.

use super::committee::Seat;
use super::dossier;
use super::input::ConsultInput;
use super::proceedings::Proceedings;
use super::proposals;
use crate::Finding;
use crate::model::{Block, CacheFor, Effort, ModelName, ModelRequest, Purpose, Turn};
use crate::text::{fenced, fill, one_line};

/// The most lines of findings that an author is shown.
const MAX_PROBLEMS: usize = 12;

/// A word of checked prose, with its numbers and ids, takes about this many tokens.
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

/// How many tokens an answer that is a document may have: a second question must hold the evidence,
/// the first answer and room for another one.
pub(super) fn document_tokens(input: &ConsultInput) -> u32 {
    input.calls.document_tokens.min(input.calls.window_tokens / 5).max(1)
}

/// Asks for data that does not exist.
pub(super) fn synthesize(
    input: &ConsultInput,
    known: &Proceedings,
    purpose: Purpose,
) -> ModelRequest {
    let template =
        if purpose == Purpose::SynthesizeNews { SYNTHESIZE_NEWS } else { SYNTHESIZE_FINANCIALS };
    let text = written(template, input, known);
    let model = input.models.inference();
    request(
        input,
        model,
        purpose,
        vec![Block::new(text)],
        Turn::user(format!("Write it for {}.", known.company())),
    )
}

/// Asks for F1 or F2.
pub(super) fn infer(input: &ConsultInput, known: &Proceedings, purpose: Purpose) -> ModelRequest {
    let window = input.calls.window_tokens;
    let (template, evidence) = if purpose == Purpose::InferTrend {
        let template = if known.is_from_documents() { TREND_DOCUMENTS } else { TREND };
        (template, dossier::for_trend(known, window))
    } else {
        let template = if known.is_from_documents() { FINANCIAL_DOCUMENTS } else { FINANCIAL };
        (template, dossier::for_financial(known, window))
    };
    let instructions = Block::new(written(template, input, known));
    let mut turn = Turn::user(evidence);
    turn.block = turn.block.cached(CacheFor::FiveMinutes);
    request(input, input.models.inference(), purpose, vec![instructions], turn)
}

/// Asks an analyst for moves.
pub(super) fn propose(
    input: &ConsultInput,
    known: &Proceedings,
    analyst: &Seat,
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
        Block::new(dossier).cached(CacheFor::FiveMinutes),
        Block::new(persona).cached(CacheFor::FiveMinutes),
    ];
    // Behind the dossier, which stays the same bytes for everyone, and in the turn that a second
    // question keeps.
    let brief = input.terms.brief.as_deref();
    let brief = brief.map(|brief| fill(BRIEF, &[("brief", &fenced(brief))]));
    let asked = fill(PROPOSE, &[("share", &share), ("company", &company)]);
    let turn = Turn::user(asked + &brief.unwrap_or_default());
    let mut request = request(input, input.models.analyst(), Purpose::Analyst, system, turn);
    request.schema = Some(proposals::schema());
    request
}

/// Shows an author what code found in a document, and asks for it again.
pub(super) fn rewrite_document(
    first: &ModelRequest,
    answer: &str,
    findings: &[Finding],
) -> ModelRequest {
    again(first, answer, fill(REWRITE_DOCUMENT, &[("problems", &problems(findings))]))
}

/// Shows an analyst what code found in one move of an answer, and asks for that move again.
pub(super) fn rewrite_move(
    first: &ModelRequest,
    answer: &str,
    place: usize,
    title: &str,
    findings: &[Finding],
) -> ModelRequest {
    let (number, title) = (place.to_string(), title.replace('"', "'"));
    let values = [("number", &*number), ("title", &*title), ("problems", &problems(findings))];
    again(first, answer, fill(REWRITE_MOVE, &values))
}

fn again(first: &ModelRequest, answer: &str, question: String) -> ModelRequest {
    let mut request = first.clone();
    // An answer that could not be used and the question that said so are left out: the window is
    // small, and they teach nothing about what is asked now.
    request.turns.truncate(1);
    request.turns.push(Turn::assistant(answer));
    request.turns.push(Turn::user(question));
    request
}

/// Messages quote what a model wrote, so they are data.
fn problems(findings: &[Finding]) -> String {
    let shown = findings.iter().take(MAX_PROBLEMS);
    let mut list: String =
        shown.map(|finding| format!("- {}\n", one_line(&finding.message, 300))).collect();
    if findings.len() > MAX_PROBLEMS {
        list.push_str(&format!("- and {} more\n", findings.len() - MAX_PROBLEMS));
    }
    fenced(&list)
}

fn written(template: &str, input: &ConsultInput, known: &Proceedings) -> String {
    let tokens = dossier::reading_tokens(input.calls.window_tokens);
    let words = (tokens / TOKENS_A_WORD).max(40).to_string();
    let (company, cite) = (known.company(), dossier::how_to_cite(known));
    fill(template, &[("company", &company), ("words", &words), ("cite", &cite)])
}

fn request(
    input: &ConsultInput,
    model: &ModelName,
    purpose: Purpose,
    system: Vec<Block>,
    turn: Turn,
) -> ModelRequest {
    ModelRequest {
        model: model.clone(),
        purpose,
        system,
        turns: vec![turn],
        max_tokens: document_tokens(input),
        temperature: input.calls.temperature,
        // Thinking is billed as output, and what counts here is checked by code afterwards.
        effort: Some(Effort::Low),
        schema: None,
        timeout_ms: input.calls.timeout_ms,
    }
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
