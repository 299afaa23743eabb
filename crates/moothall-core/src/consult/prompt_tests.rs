use super::super::ConsultInput;
use super::super::support::{claiming, input, moves, run, said, small_input, synthetic};
use super::*;

fn shown(request: &ModelRequest) -> String {
    let mut text = format!(
        "{:?} by {}, at most {} tokens, effort {:?}, schema {:?}\n",
        request.purpose,
        request.model,
        request.max_tokens,
        request.effort,
        request.schema.as_ref().map(|schema| schema.name()),
    );
    let blocks = request.system.iter().map(|block| ("system", block));
    let turns = request.turns.iter().map(|turn| match turn.role {
        crate::model::PromptRole::User => ("user", &turn.block),
        crate::model::PromptRole::Assistant => ("assistant", &turn.block),
    });
    for (who, block) in blocks.chain(turns) {
        let cached = if block.cache.is_some() { ", cached" } else { "" };
        text.push_str(&format!("--- {who}{cached}\n{}\n", &*block.text));
    }
    text
}

#[test]
fn consultation_prompts_match_their_snapshots() {
    let wrong = "Revenue was $1,350 million in FY2025 [F0:Revenue:FY2025].";
    let ran = run(
        small_input(),
        &[
            ("F1", said(wrong)),
            ("F1/rewrite", said("Revenue grew [F0:Revenue:FY2025].")),
            ("analyst_1", said("no")),
            ("analyst_1/ask-2", moves([claiming("bicycles", wrong)])),
            ("m1/rewrite", moves([claiming("bicycles", wrong)])),
        ],
    );
    insta::assert_snapshot!("f1", shown(ran.question("F1")));
    insta::assert_snapshot!("f1_rewrite", shown(ran.question("F1/rewrite")));
    insta::assert_snapshot!("f2", shown(ran.question("F2")));
    insta::assert_snapshot!("analyst", shown(ran.question("analyst_1/ask-2")));
    insta::assert_snapshot!("move_rewrite", shown(ran.question("m1/rewrite")));
    let ran = run(synthetic(small_input()), &[]);
    insta::assert_snapshot!("synthesize", shown(ran.question("synthesize/financials")));
}

#[test]
fn every_analyst_prompt_starts_with_the_same_dossier() {
    let ran = run(input(), &[]);
    let dossier = &ran.question("analyst_1").system[0];
    for analyst in ["analyst_2", "analyst_5"] {
        assert_eq!(&ran.question(analyst).system[0], dossier);
    }
    for id in ["m1", "m15"] {
        assert_eq!(ran.debate(id).dossier, dossier.text);
    }
}

#[test]
fn each_role_calls_its_configured_model() {
    let mut input = small_input();
    input.models.inference = Some("a/inference".parse().unwrap());
    input.models.analyst = Some("a/analyst".parse().unwrap());
    input.models.critic = Some("a/critic".parse().unwrap());
    input.models.decision_maker = Some("a/maker".parse().unwrap());
    let ran = run(input, &[]);
    let asked = [
        ran.question("F2").model.to_string(),
        ran.question("analyst_1").model.to_string(),
        ran.debate("m1").critic_model.to_string(),
        ran.debate("m1").decision_maker_model.to_string(),
    ];
    assert_eq!(asked, ["a/inference", "a/analyst", "a/critic", "a/maker"]);
}

#[test]
fn prompts_and_answers_fit_a_small_context_window() {
    let mut input = ConsultInput { moves: Some(2), ..input() };
    input.calls.window_tokens = 8_192;
    let long = "Revenue was $1,350 million in FY2025 [F0:Revenue:FY2025].\n".repeat(60);
    let ran = run(input, &[("F1", said(long.clone())), ("F1/rewrite", said(long))]);
    for id in ["F1", "F1/rewrite", "F2", "analyst_1"] {
        let request = ran.question(id);
        let tokens = request.prompt_tokens_expected() + u64::from(request.max_tokens);
        assert!(tokens <= 8_192, "{id}: {tokens}");
    }
}
