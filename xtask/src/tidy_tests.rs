use super::*;

fn context() -> RuleContext {
    RuleContext { root: PathBuf::from("."), tree: SourceTree::default() }
}

#[test]
fn problem_is_printed_with_place_rule_and_hint() {
    let mut problem = TidyProblem {
        path: "src/a.rs".to_owned(),
        line: Some(7),
        rule: "some-rule",
        level: ProblemLevel::Fail,
        message: "is wrong".to_owned(),
        hint: "make it right".to_owned(),
    };
    assert_eq!(problem.to_string(), "src/a.rs:7: [some-rule] is wrong\n  hint: make it right");

    problem.line = None;
    problem.level = ProblemLevel::Warn;
    assert_eq!(
        problem.to_string(),
        "src/a.rs: warning: [some-rule] is wrong\n  hint: make it right"
    );
}

#[test]
fn rule_that_cannot_run_is_a_problem() {
    let broken = TidyRule { id: "broken", run: |_| bail!("no cargo") };
    let problems = run_rule(&broken, &context());
    assert_eq!(headlines(&problems), [".: [broken] could not run: no cargo"]);
    assert_eq!(problems[0].level, ProblemLevel::Fail);
}

#[test]
fn every_rule_has_an_id_of_its_own_and_a_test_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tidy");
    let mut ids: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
    for id in &ids {
        let tests = folder.join(format!("{}_tests.rs", id.replace('-', "_")));
        assert!(tests.is_file(), "{} is missing", tests.display());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), RULES.len());
}

#[test]
fn line_numbers_count_from_one() {
    assert_eq!(line_of("a\nb\nc", 0), 1);
    assert_eq!(line_of("a\nb\nc", 4), 3);
}
