//! Exports a consultation as one JSON object, with the field names of the original design
//! documents.

use serde_json::{Map, Value, json};

use super::consult_report::{ConsultReport, DebateReport};
use super::sections::{baseline_json, do_nothing_json};
use super::unsupported_numbers::unsupported_numbers;
use super::verdict_summary::VerdictSummary;
use crate::consult::{ConsultResult, Move, RankedMove};
use crate::debate::DebateResult;

/// The state of a consultation: `company_ticker`, `move_suggestions`, `policy_scores`,
/// `conversation_logs`, `recommended_moves`, `other_moves` and additional fields.
pub fn export(view: &ConsultReport) -> Value {
    let ranked = view.ranked.as_ref();
    let moves = |moves: fn(&ConsultResult) -> &[RankedMove]| -> Vec<Value> {
        let moves = ranked.map_or(&[][..], moves);
        moves.iter().map(|ranked| ranked_move(view, ranked)).collect()
    };
    let mut state = json!({
        "company_ticker": view.input.gather.subject(),
        "company": view.evidence().map(|evidence| &evidence.company),
        "provenance": view.evidence().map(|evidence| &evidence.provenance),
        "sheet_sha256": ranked.and_then(|ranked| ranked.sheet_sha256),
        "as_of": view.as_of(),
        "financial_data_raw": view.financial_data(),
        "news_data_raw": view.news_data(),
        "f1_financial_inference": view.proceedings.f1.as_ref().map(|document| &document.text),
        "f2_trend_inference": view.proceedings.f2.as_ref().map(|document| &document.text),
        "move_suggestions": view.moves().map(suggestion).collect::<Vec<_>>(),
        "policy_scores": view.debates.iter().filter_map(policy_score).collect::<Vec<_>>(),
        "conversation_logs": view.debates.iter().map(conversation).collect::<Vec<_>>(),
        "recommended_moves": moves(|ranked| &ranked.recommended),
        "other_moves": moves(|ranked| &ranked.other),
        "unsupported_numbers": unsupported_numbers(view),
        "do_nothing": do_nothing_json(view),
        "baseline": baseline_json(view),
        "brief": view.input.terms.brief,
        "missing": ranked.map(|ranked| &ranked.missing),
        "complete": view.outcome.is_some(),
        "verdict": view.outcome.as_ref().map(|outcome| outcome.verdict),
        "findings": view.outcome.as_ref().map(|outcome| &outcome.findings),
        "approvals": view.approvals,
    });
    // `verdict` is that of the whole run: pass, needs-person or fail.
    if let Some(verdict) = VerdictSummary::of(view) {
        state["panel_verdict"] = verdict.json();
    }
    state
}

fn suggestion(one: &Move) -> Value {
    json!({
        "move_id": one.move_id,
        "analyst": one.analyst,
        "title": one.proposal.title,
        "content": one.markdown(),
        "proposal": one.proposal,
    })
}

/// The score object; `None` for a debate without scores.
fn policy_score((move_id, debate): (&String, &DebateReport)) -> Option<Value> {
    let debated = debate.debated.as_ref()?;
    let by_agent: Map<String, Value> = debated
        .scorecards
        .iter()
        .map(|(id, card)| {
            let mut scores: Map<String, Value> =
                card.scores.iter().map(|(metric, score)| (metric.clone(), json!(score))).collect();
            scores.insert("reasoning".to_owned(), json!(card.reasoning));
            (id.clone(), Value::Object(scores))
        })
        .collect();
    let mut score = json!({
        "move_id": move_id,
        "total_score": debated.score(),
        "top_score": debated.top_score,
        "scores_by_agent": by_agent,
        "conversation_logs": debate.logs,
        "rounds_done": debated.rounds_done,
        "spread": debated.spread,
        "objections": debated.objections,
        "stances": debated.stances,
        "degraded": debated.degraded,
        "isolation": debate.isolation.as_ref().map(|isolation| isolation.class),
    });
    if !debated.calculations.is_empty() {
        score["calculations"] = json!(debated.calculations);
    }
    Some(score)
}

fn conversation((move_id, debate): (&String, &DebateReport)) -> Value {
    let mut logs = Map::from_iter([("move_id".to_owned(), json!(move_id))]);
    logs.extend(debate.logs.iter().map(|(name, log)| (name.clone(), json!(log))));
    Value::Object(logs)
}

fn ranked_move(view: &ConsultReport, ranked: &RankedMove) -> Value {
    let debated = ranked.debated.as_ref();
    json!({
        "move_id": ranked.move_id,
        "title": ranked.title,
        "rank": view.ranked.as_ref().and_then(|all| all.meaningful_rank(&ranked.move_id)),
        "total_score": debated.and_then(DebateResult::score),
        "spread": debated.map(|debated| debated.spread),
        "degraded": debated.map(|debated| &debated.degraded),
        "key_objection": debated.and_then(|debated| debated.hardest_open()),
        "isolation": ranked.isolation,
        "findings": ranked.findings,
        "similar_to": ranked.similar_to,
        "support": ranked.support,
        "said": ranked.said,
        "content": view.find_move(&ranked.move_id).map(Move::markdown),
    })
}
