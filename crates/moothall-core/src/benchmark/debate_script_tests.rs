use super::*;
use crate::benchmark::{BenchmarkSet, JudgeWorld};
use crate::model::{PromptBlock, PromptTurn};

fn request(purpose: CallPurpose, system: &[&str], turns: Vec<PromptTurn>) -> ModelRequest {
    ModelRequest {
        purpose,
        system: system.iter().map(|text| PromptBlock::new(*text)).collect(),
        turns,
        ..ModelRequest::ask("scripted-judge/judge-1".parse().unwrap(), "", 500)
    }
}

#[test]
fn analysts_propose_the_moves_of_the_company_in_their_prompt() {
    let judges = ScriptedJudges::new(BenchmarkSet::synthetic_1(), JudgeWorld::default());
    let company = &judges.set().companies[5];
    let script = DebateScript::new(&judges);
    let ask = |persona: &str, question: &str| {
        let system = [format!("Dossier of {}.", company.name), persona.to_owned()];
        let system: Vec<&str> = system.iter().map(String::as_str).collect();
        let turns = vec![PromptTurn::user(question)];
        let reply = script.answer(&request(CallPurpose::Analyst, &system, turns), 0).unwrap();
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
        let moves = reply["moves"].as_array().unwrap().iter();
        moves.map(|one| one["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let titles: Vec<&String> = company.moves.iter().map(|one| &one.proposal.title).collect();
    let second = ask("You are Cost Surgeon, an analyst. Propose 3 moves.", "Propose.");
    assert_eq!(second.iter().collect::<Vec<_>>(), titles[3..6]);
    let again = ask("You are Cost Surgeon, an analyst.", "Code checked move 2 of 3.");
    assert_eq!(again, [titles[4].clone()]);
}

#[test]
fn debates_about_the_same_move_differ_by_their_draw_only() {
    let judges = ScriptedJudges::new(BenchmarkSet::synthetic_1(), JudgeWorld::default());
    let script = DebateScript::new(&judges);
    let system = ["dossier", "rules", "# m7: Sell"];
    let opening = request(CallPurpose::Critic, &system, vec![PromptTurn::user("Open.")]);
    assert!(DebateScript::opening_key(&opening).is_some());
    let (one, two) = (script.answer(&opening, 0).unwrap(), script.answer(&opening, 1).unwrap());
    assert_eq!(one.replace("draw A", "draw B"), two);
    let later =
        vec![PromptTurn::user("Open."), PromptTurn::assistant(one), PromptTurn::user("Go on.")];
    let later = request(CallPurpose::Critic, &system, later);
    assert!(DebateScript::opening_key(&later).is_none());
    assert_eq!(script.answer(&later, 0), script.answer(&later, 1));
}
