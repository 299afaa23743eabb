//! Scripted replies for everyone in a benchmark run besides the panel: analysts propose the moves of
//! the set, and debates are short and differ only in a mark for their luck.

use serde_json::json;

use super::scripted_judge::{JudgeQuestion, ScriptedJudges};
use crate::consult::{board, demonstration};
use crate::debate::{
    CriticTurn, DebateStance, DecisionMakerTurn, ObjectionAnswer, ObjectionSeverity,
    RaisedObjection, RawScores,
};
use crate::model::{CallPurpose, ModelRequest, PromptRole};

/// Replies to the requests of a consultation about a company of a set.
#[derive(Debug)]
pub struct DebateScript<'a> {
    judges: &'a ScriptedJudges,
}

impl<'a> DebateScript<'a> {
    /// Replies for a set.
    pub fn new(judges: &'a ScriptedJudges) -> Self {
        Self { judges }
    }

    /// What identifies a debate if this request opens one: the same move is debated several times,
    /// and each time is a new draw.
    pub fn opening_key(request: &ModelRequest) -> Option<String> {
        let is_first = request.turns.iter().all(|turn| turn.role == PromptRole::User);
        let is_opening = request.purpose == CallPurpose::Critic && is_first;
        is_opening.then(|| format!("{}\n{}", system(request, 0), system(request, 2)))
    }

    /// The reply, if the model gives one. `draw` is the number of the debate about the same move.
    pub fn answer(&self, request: &ModelRequest, draw: usize) -> Option<String> {
        match request.purpose {
            CallPurpose::PanelScore => self.card(request),
            CallPurpose::Analyst => self.moves(request),
            CallPurpose::Critic => critic(request, draw),
            CallPurpose::DecisionMaker => decision_maker(),
            _ => demonstration::answer(request),
        }
    }

    fn card(&self, request: &ModelRequest) -> Option<String> {
        let rules = system(request, 1);
        let metrics: Vec<&str> = rules
            .lines()
            .filter_map(|line| Some(line.strip_prefix('`')?.split_once("` (")?.0))
            .collect();
        let question = JudgeQuestion {
            model: request.model.name(),
            lens: system(request, 2),
            dossier: system(request, 0),
            case: request.turns.first().map_or("", |turn| &turn.block.text),
        };
        let scores = self.judges.score(&question, &metrics)?;
        let metrics = metrics.iter().map(|metric| (*metric).to_owned()).zip(scores).collect();
        let reasoning = "Scripted scores with planted errors.".to_owned();
        serde_json::to_string(&RawScores { metrics, reasoning }).ok()
    }

    /// The analyst's share of the company's moves, or one of them again.
    fn moves(&self, request: &ModelRequest) -> Option<String> {
        let company = self.judges.company(system(request, 0))?;
        let persona = system(request, 1);
        let committee = board();
        let analyst = committee.analysts.iter().position(|one| persona.contains(&one.name))?;
        let share = usize::try_from(committee.moves_per_analyst).ok()?;
        let moves = company.moves.iter().skip(analyst * share).take(share);
        let question = request.turns.iter().rev().find(|turn| turn.role == PromptRole::User)?;
        let again = question.block.text.strip_prefix("Code checked move ");
        let again = again.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
        let moves: Vec<_> = match again {
            Some(number) => moves.skip(number.saturating_sub(1)).take(1).collect(),
            None => moves.collect(),
        };
        let moves: Vec<_> = moves.into_iter().map(|one| &one.proposal).collect();
        Some(json!({ "moves": moves }).to_string())
    }
}

fn critic(request: &ModelRequest, draw: usize) -> Option<String> {
    // A letter: a number in a debate would have to be cited.
    let letter = char::from(b'A' + u8::try_from(draw % 26).ok()?);
    let objections = match DebateScript::opening_key(request) {
        Some(_) => vec![RaisedObjection {
            id: "new".to_owned(),
            severity: ObjectionSeverity::Major,
            text: format!("Nothing shows that the stated figures hold (draw {letter})."),
            evidence: Vec::new(),
        }],
        None => Vec::new(),
    };
    let message = match objections.is_empty() {
        true => "The answer repeats the plan. The doubt about its figures stays.".to_owned(),
        false => format!("The plan states figures without a source (draw {letter})."),
    };
    serde_json::to_string(&CriticTurn { message, objections, withdrawn: Vec::new() }).ok()
}

fn decision_maker() -> Option<String> {
    let turn = DecisionMakerTurn {
        message: "The figures are stated openly, and each of them can be checked.".to_owned(),
        stance: DebateStance::Hold,
        answers: vec![ObjectionAnswer { objection: "O1".to_owned(), evidence: Vec::new() }],
        conceded: Vec::new(),
        scores: None,
    };
    serde_json::to_string(&turn).ok()
}

fn system(request: &ModelRequest, at: usize) -> &str {
    request.system.get(at).map_or("", |block| &block.text)
}

#[cfg(test)]
#[path = "debate_script_tests.rs"]
mod tests;
