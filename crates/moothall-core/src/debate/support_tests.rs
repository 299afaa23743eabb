//! Shared test support: a debate about a small move, models with valid answers, and a driver that
//! performs effects in any order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::consult::board;
use crate::model::{ModelRequest, StopReason, TokenUsage, UsageBasis};
use crate::{Conclusion, Outcome, Sha256Hex};

pub(crate) const MOVE: &str =
    "# m7: Sell service contracts\n\nRevenue grew by 4 % [F0:Revenue:FY2025].\n";

/// A debate with the built-in committee.
pub(crate) fn input(rounds: u32) -> DebateInput {
    let board = board();
    DebateInput {
        move_id: "m7".to_owned(),
        company: "Helix Instruments (HLXI)".to_owned(),
        dossier: "# Dossier: Helix Instruments\nRevenue FY2025 | 412.0\n".into(),
        move_markdown: MOVE.into(),
        machine_findings: Vec::new(),
        rounds,
        critic: board.critic,
        decision_makers: board.decision_makers,
        metrics: board.metrics,
        critic_model: "openai/gpt-5-mini".parse().unwrap(),
        decision_maker_model: "anthropic/claude-haiku-5-5".parse().unwrap(),
        calls: CallSettings::default(),
        prompts: crate::OwnTexts::default(),
        scoring: DebateScoring::default(),
        calculations: None,
    }
}

pub(crate) fn reply(text: impl Into<String>) -> ModelReply {
    ModelReply {
        fallback: None,
        text: text.into(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: TokenUsage { input: 10, output: 3, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

pub(crate) fn said(text: impl Into<String>) -> EffectResult {
    EffectResult::ModelReplied(reply(text))
}

pub(crate) fn failed(kind: FailureKind) -> EffectResult {
    EffectResult::ModelFailed(ModelFailure::new(kind, "as planned"))
}

/// A critic answer with objections as `(id, severity, text)`.
pub(crate) fn critic(
    message: &str,
    objections: &[(&str, &str, &str)],
    withdrawn: &[&str],
) -> String {
    let objection = |(id, severity, text): &(&str, &str, &str)| json!({"id": id, "severity": severity, "text": text, "evidence": []});
    let objections: Vec<Value> = objections.iter().map(objection).collect();
    json!({"message": message, "objections": objections, "withdrawn": withdrawn}).to_string()
}

/// A decision maker's answer.
pub(crate) fn answers(message: &str, stance: &str, answers: &[&str], conceded: &[&str]) -> String {
    let answer = |id: &&str| json!({"objection": id, "evidence": []});
    let answers: Vec<Value> = answers.iter().map(answer).collect();
    json!({
        "message": message, "stance": stance, "answers": answers, "conceded": conceded,
        "scores": null,
    })
    .to_string()
}

/// A decision maker's scores, in the order of the built-in metrics.
pub(crate) fn scores(values: [i64; 4], reasoning: &str) -> String {
    let [impact, feasibility, risk_adjusted_return, strategic_alignment] = values;
    json!({
        "message": "", "stance": "hold", "answers": [], "conceded": [],
        "scores": {
            "impact": impact, "feasibility": feasibility,
            "risk_adjusted_return": risk_adjusted_return,
            "strategic_alignment": strategic_alignment, "reasoning": reasoning,
        },
    })
    .to_string()
}

/// A valid answer to any prompt; its text contains the effect id.
pub(crate) fn in_form(id: &str) -> String {
    match id.split('/').collect::<Vec<_>>().as_slice() {
        [_, "score", ..] => scores([7, 6, 5, 8], &format!("scored in {id}")),
        [_, "round-1", "critic", ..] => critic(
            &format!("words of {id}"),
            &[("new", "major", "Nobody asked the customers."), ("new", "minor", "It is late.")],
            &[],
        ),
        [_, _, "critic", ..] => critic(
            &format!("words of {id}"),
            &[("O1", "major", "Still nobody asked."), ("new", "minor", &format!("new in {id}"))],
            &["O2"],
        ),
        _ => answers(&format!("words of {id}"), "hold", &["O1", "O2"], &[]),
    }
}

/// Valid answers, except for the given ids.
pub(crate) fn except<'a>(
    answers: &'a [(&'a str, EffectResult)],
) -> impl FnMut(&str) -> EffectResult + 'a {
    move |id| {
        let other = answers.iter().find(|(other, _)| *other == id);
        other.map_or_else(|| said(in_form(id)), |(_, result)| result.clone())
    }
}

/// A recorded debate.
pub(crate) struct Ran {
    pub(crate) debate: Debate,
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<RunEvent>,
    /// All requests, in order.
    pub(crate) asked: Vec<(String, ModelRequest)>,
    /// The effects of each step that has any.
    pub(crate) waves: Vec<Vec<String>>,
}

impl Ran {
    pub(crate) fn debated(&self) -> &DebateResult {
        match &self.outcome.conclusion {
            Conclusion::Debated(debated) => debated,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn question(&self, id: &str) -> &ModelRequest {
        let found = self.asked.iter().find(|(asked, _)| asked == id);
        &found.unwrap_or_else(|| panic!("`{id}` was not asked")).1
    }

    pub(crate) fn keys(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.key.as_str()).collect()
    }

    pub(crate) fn rules(&self) -> Vec<(String, String)> {
        let rule = |finding: &RunFinding| (finding.rule.to_string(), finding.subject.clone());
        self.outcome.findings.iter().map(rule).collect()
    }

    /// Everything that must not depend on the order of answers.
    pub(crate) fn end(&self) -> End {
        let mut events = self.events.clone();
        events.sort_by(|a, b| a.key.cmp(&b.key));
        let hash = |(id, request): &(String, ModelRequest)| (id.clone(), request.hash().unwrap());
        End {
            outcome: self.outcome.clone(),
            events,
            asked: self.asked.iter().map(hash).collect(),
            logs: self.debate.logs(),
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct End {
    outcome: Outcome,
    events: Vec<RunEvent>,
    asked: BTreeMap<String, Sha256Hex>,
    logs: BTreeMap<String, Vec<DebateLogEntry>>,
}

/// Runs a debate to its end, answering effects in the order requested.
#[track_caller]
pub(crate) fn run(input: DebateInput, answer: impl FnMut(&str) -> EffectResult) -> Ran {
    run_in_order(input, answer, |_| 0)
}

/// The same, but the next effect to answer is chosen among the pending ones.
#[track_caller]
pub(crate) fn run_in_order(
    input: DebateInput,
    mut answer: impl FnMut(&str) -> EffectResult,
    mut choose: impl FnMut(usize) -> usize,
) -> Ran {
    let mut debate = Debate::new(input).unwrap();
    let mut open: Vec<EffectId> = Vec::new();
    let (mut events, mut asked, mut waves) = (Vec::new(), Vec::new(), Vec::new());
    let mut step = debate.start();
    loop {
        events.append(&mut step.publish);
        if !step.perform.is_empty() {
            waves.push(step.perform.iter().map(|(id, _)| id.to_string()).collect());
        }
        for (id, effect) in step.perform {
            match effect {
                Effect::CallModel(request) => asked.push((id.to_string(), *request)),
                Effect::Execute(_) => {}
                other => panic!("{other:?}"),
            }
            open.push(id);
        }
        if let Some(outcome) = step.outcome {
            assert!(open.is_empty(), "it ended while it waited");
            return Ran { debate, outcome, events, asked, waves };
        }
        assert!(!open.is_empty(), "it waits for nothing");
        let id = open.remove(choose(open.len()) % open.len());
        step = debate.resume(&id, answer(id.as_str())).unwrap();
    }
}
