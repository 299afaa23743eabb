use moothall_core::benchmark::{BenchmarkSet, JudgeWorld};
use moothall_core::model::{CallPurpose, PromptBlock};

use super::*;

fn request(purpose: CallPurpose, system: [&str; 3]) -> ModelRequest {
    ModelRequest {
        purpose,
        system: system.map(PromptBlock::new).into(),
        ..ModelRequest::ask("scripted-judge/judge-1".parse().unwrap(), "a question", 500)
    }
}

#[test]
fn every_debate_about_a_move_is_a_new_draw() {
    let judges = ScriptedJudges::new(BenchmarkSet::synthetic_1(), JudgeWorld::default());
    let backend = ScriptedJudgeBackend::new(judges);
    let opening = |move_text| request(CallPurpose::Critic, ["dossier", "rules", move_text]);
    assert!(backend.text(&opening("# m1: Sell")).contains("draw A"));
    assert!(backend.text(&opening("# m1: Sell")).contains("draw B"));
    assert!(backend.text(&opening("# m2: Buy")).contains("draw A"));
}

#[test]
fn a_judge_without_a_profile_gives_no_scores() {
    let world = JudgeWorld { judges: BTreeMap::new(), ..JudgeWorld::default() };
    let judges = ScriptedJudges::new(BenchmarkSet::synthetic_1(), world);
    let backend = ScriptedJudgeBackend::new(judges);
    assert_eq!(backend.text(&request(CallPurpose::PanelScore, ["", "", ""])), UNUSABLE);
}
