//! Arbitrary replies in an arbitrary order: the debate always ends within its limit of calls, and
//! all recorded content stays within its size limits.
//!
//! Input: a byte that selects rounds and window, then replies separated by a record separator, used
//! in turn. The first character of a reply selects its kind: `!` a failure, `~` a truncated answer,
//! `<` and `>` text formatted as the reply of a critic or a decision maker, anything else is used
//! unchanged.

use moothall_core::consult::board;
use moothall_core::debate::{CallSettings, Debate, DebateInput, base_calls, log_json, transcript};
use moothall_core::model::{
    FailureKind, ModelFailure, ModelReply, StopReason, TokenUsage, UsageBasis,
};
use moothall_core::{Conclusion, Effect, EffectResult, Outcome, RunVerdict, Workflow};
use serde_json::json;

/// Separates the replies.
const PART: char = '\u{1e}';

pub fn debate_replies(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    let replies: Vec<&str> = text.split(PART).collect();
    let rounds = u32::from(choice % 4) + 1;
    let window_tokens = if choice < 128 { 200_000 } else { 2_048 };
    let mut debate = Debate::new(input(rounds, window_tokens)).unwrap();
    let mut step = debate.start();
    let mut open = Vec::new();
    let mut calls = 0;
    let outcome = loop {
        for (id, effect) in step.perform {
            let Effect::CallModel(request) = &effect else { panic!("{effect:?}") };
            assert!(request.turns.iter().all(|turn| !turn.block.text.trim().is_empty()));
            assert!(request.turns.iter().all(|turn| turn.block.text.len() < 20_000));
            open.push(id);
        }
        if let Some(outcome) = step.outcome {
            break outcome;
        }
        let reply = replies[calls % replies.len()];
        calls += 1;
        let id = open.remove(reply.len() % open.len());
        step = debate.resume(&id, result(reply)).unwrap();
        assert!(debate.resume(&id, result(reply)).is_err());
    };
    assert!(open.is_empty());
    // Each call may be retried once.
    assert!(calls <= 2 * base_calls(rounds, 3) as usize);
    check(&debate, &outcome);
}

fn check(debate: &Debate, outcome: &Outcome) {
    assert_eq!(RunVerdict::of(&outcome.findings), outcome.verdict);
    let written = serde_json::to_string(outcome).unwrap();
    assert_eq!(&serde_json::from_str::<Outcome>(&written).unwrap(), outcome);
    if let Conclusion::Debated(debated) = &outcome.conclusion {
        assert_eq!(**debated, debate.debated());
        let scores = || debated.scorecards.values().flat_map(|card| card.scores.values());
        assert!(scores().all(|score| (1..=10).contains(score)));
        // A scorecard has every metric or none.
        assert_eq!(debated.scorecards.len(), 3);
        assert!(debated.scorecards.values().all(|card| card.scores.len() == 4 || !card.is_given()));
        assert_eq!(debated.score().is_some(), scores().count() == 12);
        assert_eq!(scores().map(|score| u32::from(*score)).sum::<u32>(), debated.total_score);
        assert!(debated.objections.len() <= 4 * 24);
    }
    for log in debate.logs().values() {
        assert!(log.iter().all(|entry| entry.content.len() <= 8 * 1024));
        assert!(log_json(log).starts_with('['));
        let _ = transcript(log);
    }
}

fn result(reply: &str) -> EffectResult {
    let mut signs = reply.chars();
    let (text, stop) = match signs.next() {
        Some('!') => {
            let failure = ModelFailure::new(FailureKind::Server, signs.as_str());
            return EffectResult::ModelFailed(failure);
        }
        Some('~') => (signs.as_str().to_owned(), StopReason::MaxTokens),
        Some('<') => (critic(signs.as_str()), StopReason::End),
        Some('>') => (decision_maker(signs.as_str()), StopReason::End),
        _ => (reply.to_owned(), StopReason::End),
    };
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text,
        stop,
        model: "m".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: None,
    })
}

/// Input lines: the message, then ids. Each id becomes an objection, and every other objection is
/// withdrawn.
fn critic(text: &str) -> String {
    let mut lines = text.lines();
    let message = lines.next().unwrap_or("");
    let ids: Vec<&str> = lines.take(8).collect();
    let objection = |id: &&str| {
        let severity = ["minor", "major", "fatal"][id.len() % 3];
        json!({"id": id, "severity": severity, "text": id, "evidence": [id]})
    };
    json!({
        "message": message,
        "objections": ids.iter().map(objection).collect::<Vec<_>>(),
        "withdrawn": ids.iter().step_by(2).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Input lines: the message, then ids. Each id is answered, and every other one is conceded. The
/// scores are the lengths of the lines.
fn decision_maker(text: &str) -> String {
    let mut lines = text.lines();
    let message = lines.next().unwrap_or("");
    let ids: Vec<&str> = lines.take(8).collect();
    let score = |at: usize| ids.get(at).map_or(5, |line| line.len());
    let stance = ["hold", "partial", "concede"][message.len() % 3];
    let answer = |id: &&str| json!({"objection": id, "evidence": [id]});
    json!({
        "message": message,
        "stance": stance,
        "answers": ids.iter().map(answer).collect::<Vec<_>>(),
        "conceded": ids.iter().step_by(2).collect::<Vec<_>>(),
        "scores": {
            "impact": score(0), "feasibility": score(1), "risk_adjusted_return": score(2),
            "strategic_alignment": score(3), "reasoning": message,
        },
    })
    .to_string()
}

fn input(rounds: u32, window_tokens: u32) -> DebateInput {
    let board = board();
    DebateInput {
        move_id: "m1".to_owned(),
        company: "Helix Instruments".to_owned(),
        dossier: "Revenue FY2025 412".into(),
        move_markdown: "# m1: Sell more [F0:Revenue:FY2025]".into(),
        machine_findings: Vec::new(),
        rounds,
        critic: board.critic,
        decision_makers: board.decision_makers,
        metrics: board.metrics,
        critic_model: "demo".parse().unwrap(),
        decision_maker_model: "demo".parse().unwrap(),
        calls: CallSettings { message_tokens: 200, window_tokens, ..CallSettings::default() },
        prompts: moothall_core::OwnTexts::default(),
        scoring: moothall_core::debate::DebateScoring::default(),
        calculations: None,
    }
}
