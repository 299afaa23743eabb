//! The built-in committee: five analysts with three moves each, one critic, three decision makers,
//! ten rounds, four metrics of ten points.

use super::committee::{Committee, CommitteeMember, InferenceAgents, MetricLevel, ScoreMetric};
use crate::OwnTexts;

/// The built-in committee.
pub fn board() -> Committee {
    Committee {
        name: "board".to_owned(),
        title: "A board of directors: five analysts, one critic, three decision makers".to_owned(),
        rounds: 10,
        moves_per_analyst: 3,
        analysts: vec![
            seat("analyst_1", "Market Expander", include_str!("board/market_expander.md")),
            seat("analyst_2", "Cost Surgeon", include_str!("board/cost_surgeon.md")),
            seat("analyst_3", "Product Futurist", include_str!("board/product_futurist.md")),
            seat("analyst_4", "Capital Allocator", include_str!("board/capital_allocator.md")),
            seat("analyst_5", "Risk Officer", include_str!("board/risk_officer.md")),
        ],
        critic: seat("critic", "Critic", include_str!("board/critic.md")),
        decision_makers: vec![
            seat("D1", "Growth Strategist", include_str!("board/D1.md")),
            seat("D2", "Operational Pragmatist", include_str!("board/D2.md")),
            seat("D3", "Stakeholder Value Advocate", include_str!("board/D3.md")),
        ],
        metrics: vec![impact(), feasibility(), risk_adjusted_return(), strategic_alignment()],
        panel: Vec::new(),
        verdict: None,
        inference: InferenceAgents::default(),
        prompts: OwnTexts::default(),
        memo: OwnTexts::default(),
    }
}

/// The built-in panel: five lenses that use the default model.
pub fn panel() -> Vec<CommitteeMember> {
    vec![
        seat("P1", "Cash and returns", include_str!("board/cash_and_returns.md")),
        seat("P2", "Execution", include_str!("board/execution.md")),
        seat("P3", "Customers and competitors", include_str!("board/customers_and_competitors.md")),
        seat("P4", "Downside", include_str!("board/downside.md")),
        seat("P5", "Evidence and logic", include_str!("board/evidence_and_logic.md")),
    ]
}

fn seat(id: &str, name: &str, lens: &str) -> CommitteeMember {
    let lens = lens.trim_end().to_owned();
    CommitteeMember { id: id.to_owned(), name: name.to_owned(), lens, model: None }
}

fn metric(id: &str, name: &str, asks: &str, levels: [(u8, &str); 5]) -> ScoreMetric {
    let level = |(from, means): (u8, &str)| MetricLevel { from, means: means.to_owned() };
    ScoreMetric {
        id: id.to_owned(),
        name: name.to_owned(),
        asks: asks.to_owned(),
        levels: levels.into_iter().map(level).collect(),
    }
}

fn impact() -> ScoreMetric {
    metric(
        "impact",
        "Impact",
        "How large is the effect on the company's growth, revenue or market position?",
        [
            (1, "no effect that a line of the accounts would show"),
            (3, "a visible effect on one line, below one per cent of revenue or profit"),
            (5, "a few per cent of revenue or profit, or a clear gain in one segment"),
            (7, "a tenth of revenue or profit, or a new position in a market that matters"),
            (9, "changes what the company is, and cited evidence carries the size"),
        ],
    )
}

fn feasibility() -> ScoreMetric {
    metric(
        "feasibility",
        "Feasibility",
        "How realistic is it with the present resources, time and constraints?",
        [
            (1, "an objection that blocks execution stands unanswered"),
            (3, "needs people, money or rights that the company does not have"),
            (5, "possible, but it displaces other work and the plan has gaps"),
            (7, "the company has done something like it; steps and owners are named"),
            (9, "within present means and time, and every execution objection was answered"),
        ],
    )
}

fn risk_adjusted_return() -> ScoreMetric {
    metric(
        "risk_adjusted_return",
        "Risk-Adjusted Return",
        "How favourable is the upside relative to the downside?",
        [
            (1, "the downside is larger and cannot be limited"),
            (3, "the upside rests on assumptions that nobody supported"),
            (5, "upside and downside are of one size"),
            (7, "the upside is larger and the loss is limited by kill criteria"),
            (9, "a small, limited stake with an upside that cited evidence carries"),
        ],
    )
}

fn strategic_alignment() -> ScoreMetric {
    metric(
        "strategic_alignment",
        "Strategic Alignment",
        "How well does it fit the company's long-term direction?",
        [
            (1, "works against what the company says and does"),
            (3, "unrelated to it"),
            (5, "fits, but nothing depends on it"),
            (7, "advances a direction that the filings show"),
            (9, "the direction cannot be reached without it or something like it"),
        ],
    )
}
