use super::super::Debate;
use super::super::support::input;
use super::*;

#[test]
fn an_input_that_cannot_be_debated_is_refused() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut DebateInput), expected: &str) {
        let mut input = input(3);
        change(&mut input);
        assert_eq!(Debate::new(input).unwrap_err().to_string(), expected);
    }
    let not_usable = |id: &str| {
        format!(
            "invalid id `{id}`: use 1 to 40 letters, digits, `-` or `_`; ids must be unique and not reserved"
        )
    };
    check(|input| input.rounds = 0, "invalid number of rounds: 0 (must be 1 to 20)");
    check(|input| input.rounds = 21, "invalid number of rounds: 21 (must be 1 to 20)");
    check(
        |input| input.decision_makers.clear(),
        "invalid number of decision makers: 0 (must be 1 to 5)",
    );
    check(|input| input.metrics.clear(), "invalid number of metrics: 0 (must be 1 to 8)");
    for id in ["m7/x", "m7/d", "m7/d2/d3", "r2/m7/d2/x", "x/m7", "r2/", "/m7", "r2/../d2"] {
        let shown = match id {
            "r2/" => "",
            "r2/../d2" => "..",
            id => id,
        };
        check(|input| input.move_id = id.to_owned(), &not_usable(shown));
    }
    for id in ["m7", "m7/d2", "r2/m7", "r2/m7/d2", "control-1", "r3/control-1"] {
        let mut input = input(3);
        input.move_id = id.to_owned();
        assert!(Debate::new(input).is_ok(), "{id}");
    }
    check(|input| input.decision_makers[1].id = "critic".to_owned(), &not_usable("critic"));
    check(|input| input.decision_makers[1].id = "D1".to_owned(), &not_usable("D1"));
    check(|input| input.metrics[0].id = "reasoning".to_owned(), &not_usable("reasoning"));
    check(|input| input.dossier = " ".into(), "the dossier is missing or too long");
    check(
        |input| input.move_markdown = "x".repeat(70_000).into(),
        "the move is missing or too long",
    );
}
