use super::super::support::{input, run, small_input};
use super::*;

fn model(name: &str) -> ModelList {
    name.parse().unwrap()
}

fn assigned(named: &[(&str, &str)]) -> Result<ConsultInput, MemberModelError> {
    let mut input = small_input();
    input.committee.decision_makers[1].model = Some(model("file/d2"));
    input.committee.critic.model = Some(model("file/critic"));
    let named: Vec<(String, ModelList)> =
        named.iter().map(|(name, of)| ((*name).to_owned(), model(of))).collect();
    input.models.assign(&mut input.committee, &named)?;
    Ok(input)
}

fn shown(input: &ConsultInput) -> String {
    group_by_model(&input.member_models())
}

#[test]
fn a_flag_wins_over_the_committee_which_wins_over_the_default() {
    assert_eq!(
        shown(&assigned(&[]).unwrap()),
        "openai/gpt-5-mini (F1, F2, analyst_1, analyst_2, D1, D3), file/critic (critic), file/d2 (D2)"
    );
    assert_eq!(
        shown(
            &assigned(&[("decision-maker", "a/makers"), ("D3", "a/d3"), ("F2", "a/f2")]).unwrap()
        ),
        "openai/gpt-5-mini (F1, analyst_1, analyst_2), a/f2 (F2), file/critic (critic), \
         a/makers (D1, D2), a/d3 (D3)"
    );
}

#[test]
fn an_unknown_or_repeated_member_is_refused() {
    let Err(MemberModelError::Unknown { name, known }) = assigned(&[("D9", "a/b")]) else {
        panic!("D9 is not a member");
    };
    assert_eq!(name, "D9");
    assert_eq!(
        known.join(" "),
        "inference analyst critic decision-maker F1 F2 analyst_1 analyst_2 analyst_3 analyst_4 \
         analyst_5 D1 D2 D3"
    );
    assert_eq!(
        assigned(&[("D1", "a/b"), ("D1", "a/c")]),
        Err(MemberModelError::Repeated("D1".to_owned()))
    );
}

#[test]
fn each_member_is_called_with_its_own_model() {
    let names = [("F1", "a/f1"), ("analyst_2", "a/second"), ("critic", "a/critic"), ("D2", "a/d2")];
    let ran = run(assigned(&names).unwrap(), &[]);
    let asked = |id: &str| ran.question(id).model.to_string();
    assert_eq!(
        ["F1", "F2", "analyst_1", "analyst_2"].map(asked),
        ["a/f1", "openai/gpt-5-mini", "openai/gpt-5-mini", "a/second"]
    );
    let debate = ran.debate("m1");
    let maker = |at: usize| {
        crate::debate::baseline::ask(debate, at, CallPurpose::ScoreBaseline)
            .unwrap()
            .model
            .to_string()
    };
    assert_eq!(debate.critic_model.to_string(), "a/critic");
    assert_eq!([maker(0), maker(1)], ["openai/gpt-5-mini", "a/d2"]);
}

#[test]
fn a_default_is_needed_until_every_member_has_a_model() {
    let needs = |named: &[(&str, &str)]| {
        let input = assigned(named).unwrap();
        input.models.needs_default(&input.committee)
    };
    assert!(needs(&[("analyst", "a/b"), ("inference", "a/b")]));
    assert!(!needs(&[("analyst", "a/b"), ("inference", "a/b"), ("D1", "a/b"), ("D3", "a/b")]));
}

#[test]
fn the_estimate_is_split_by_model_and_keeps_its_sum() {
    let whole = crate::consult::estimate(&input(), Some(5_000));
    let mut split = input();
    split.committee.decision_makers[1].model = Some(model("a/d2"));
    split.committee.analysts[0].model = Some(model("a/first"));
    let parts = crate::consult::estimate(&split, Some(5_000));
    assert_eq!((whole.calls, whole.beside), (parts.calls, parts.beside));
    assert_eq!(whole.high().total(), parts.high().total());
    let rows: Vec<String> = parts
        .roles
        .iter()
        .map(|role| format!("{} {} {}", role.model, role.calls, role.members.join(" ")))
        .collect();
    assert_eq!(
        rows,
        [
            "openai/gpt-5-mini 1 ",
            "openai/gpt-5-mini 1 ",
            "a/first 1 analyst_1",
            "openai/gpt-5-mini 4 analyst_2 analyst_3 analyst_4 analyst_5",
            "openai/gpt-5-mini 420 critic",
            "openai/gpt-5-mini 300 D1 D3",
            "a/d2 150 D2",
            "openai/gpt-5-mini 30 D1 D3",
            "a/d2 15 D2",
        ]
    );
}

#[test]
fn the_receipt_lists_models_only_if_a_member_has_its_own_or_a_fallback() {
    assert!(small_input().receipt_models().is_empty());
    assert_eq!(assigned(&[]).unwrap().receipt_models()["D2"], *model("file/d2").first());
    let mut with_fallback = small_input();
    with_fallback.models.critic = Some(model("a/b,c/d"));
    assert_eq!(with_fallback.receipt_models()["critic"], *model("a/b").first());
}

#[test]
fn fallbacks_belong_to_the_models_of_their_role() {
    let mut input = small_input();
    let named = [("critic".to_owned(), model("a/b,c/d")), ("D2".to_owned(), model("e/f,c/d"))];
    input.models.assign(&mut input.committee, &named).unwrap();
    let names: Vec<String> = input.distinct_models().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a/b", "c/d", "e/f", "openai/gpt-5-mini"]);
    let default = "openai/gpt-5-mini";
    assert_eq!(
        shown(&input),
        format!(
            "{default} (F1, F2, analyst_1, analyst_2, D1, D3), a/b or c/d (critic), e/f or c/d (D2)"
        )
    );
}
