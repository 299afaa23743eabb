//! What the tests of this workflow share: a debate about a small move, models that answer in their
//! form, and a driver that performs effects in any order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::consult::board;
use crate::model::{ModelRequest, StopReason, Usage, UsageBasis};
use crate::{Conclusion, Outcome, Sha256Hex};

pub(super) const MOVE: &str =
    "# m7: Sell service contracts\n\nRevenue grew by 4 % [F0:Revenue:FY2025].\n";

/// A debate of the built-in committee.
pub(super) fn input(rounds: u32) -> DebateInput {
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
        calls: Calls::default(),
    }
}

pub(super) fn reply(text: impl Into<String>) -> ModelReply {
    ModelReply {
        text: text.into(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: Usage { input: 10, output: 3, ..Usage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

pub(super) fn said(text: impl Into<String>) -> EffectResult {
    EffectResult::ModelReplied(reply(text))
}

pub(super) fn failed(kind: FailureKind) -> EffectResult {
    EffectResult::ModelFailed(ModelFailure::new(kind, "as planned"))
}

/// What the critic writes: objections as `(id, severity, text)`.
pub(super) fn critic(
    message: &str,
    objections: &[(&str, &str, &str)],
    withdrawn: &[&str],
) -> String {
    let objection = |(id, severity, text): &(&str, &str, &str)| json!({"id": id, "severity": severity, "text": text, "evidence": []});
    let objections: Vec<Value> = objections.iter().map(objection).collect();
    json!({"message": message, "objections": objections, "withdrawn": withdrawn}).to_string()
}

/// What a decision maker writes.
pub(super) fn answers(message: &str, stance: &str, answers: &[&str], conceded: &[&str]) -> String {
    let answer = |id: &&str| json!({"objection": id, "evidence": []});
    let answers: Vec<Value> = answers.iter().map(answer).collect();
    json!({
        "message": message, "stance": stance, "answers": answers, "conceded": conceded,
        "scores": null,
    })
    .to_string()
}

/// What a decision maker scores, in the order of the built-in metrics.
pub(super) fn scores(values: [i64; 4], reasoning: &str) -> String {
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

/// An answer in its form to any question: the words name the effect.
pub(super) fn in_form(id: &str) -> String {
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

/// Everyone in their form, but for the ids that say otherwise.
pub(super) fn except<'a>(
    answers: &'a [(&'a str, EffectResult)],
) -> impl FnMut(&str) -> EffectResult + 'a {
    move |id| {
        let other = answers.iter().find(|(other, _)| *other == id);
        other.map_or_else(|| said(in_form(id)), |(_, result)| result.clone())
    }
}

/// What a debate did.
pub(super) struct Ran {
    pub(super) debate: Debate,
    pub(super) outcome: Outcome,
    pub(super) events: Vec<RunEvent>,
    /// Every question, in the order in which it was asked.
    pub(super) asked: Vec<(String, ModelRequest)>,
    /// The effects of each step that asked for any.
    pub(super) waves: Vec<Vec<String>>,
}

impl Ran {
    pub(super) fn debated(&self) -> &Debated {
        match &self.outcome.conclusion {
            Conclusion::Debated(debated) => debated,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn question(&self, id: &str) -> &ModelRequest {
        let found = self.asked.iter().find(|(asked, _)| asked == id);
        &found.unwrap_or_else(|| panic!("`{id}` was not asked")).1
    }

    pub(super) fn keys(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.key.as_str()).collect()
    }

    pub(super) fn rules(&self) -> Vec<(String, String)> {
        let rule = |finding: &crate::Finding| (finding.rule.to_string(), finding.subject.clone());
        self.outcome.findings.iter().map(rule).collect()
    }

    /// What must not depend on the order in which answers arrive.
    pub(super) fn end(&self) -> End {
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
pub(super) struct End {
    outcome: Outcome,
    events: Vec<RunEvent>,
    asked: BTreeMap<String, Sha256Hex>,
    logs: BTreeMap<String, Vec<Entry>>,
}

/// Drives a debate to its end with answers made from effect ids, first asked first answered.
#[track_caller]
pub(super) fn run(input: DebateInput, answer: impl FnMut(&str) -> EffectResult) -> Ran {
    run_in_order(input, answer, |_| 0)
}

/// The same with a choice among the effects that are open.
#[track_caller]
pub(super) fn run_in_order(
    input: DebateInput,
    mut answer: impl FnMut(&str) -> EffectResult,
    mut choose: impl FnMut(usize) -> usize,
) -> Ran {
    let mut debate = Debate::new(input).unwrap();
    let mut open: Vec<(EffectId, ModelRequest)> = Vec::new();
    let (mut events, mut asked, mut waves) = (Vec::new(), Vec::new(), Vec::new());
    let mut step = debate.start();
    loop {
        events.append(&mut step.publish);
        if !step.perform.is_empty() {
            waves.push(step.perform.iter().map(|(id, _)| id.to_string()).collect());
        }
        for (id, effect) in step.perform {
            let Effect::CallModel(request) = effect else { panic!("{effect:?}") };
            asked.push((id.to_string(), (*request).clone()));
            open.push((id, *request));
        }
        if let Some(outcome) = step.outcome {
            assert!(open.is_empty(), "it ended while it waited");
            return Ran { debate, outcome, events, asked, waves };
        }
        assert!(!open.is_empty(), "it waits for nothing");
        let (id, _) = open.remove(choose(open.len()) % open.len());
        step = debate.resume(&id, answer(id.as_str())).unwrap();
    }
}
