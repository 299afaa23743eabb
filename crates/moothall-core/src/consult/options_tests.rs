use super::super::support::input;
use super::*;
use crate::consult::{ConsultInput, MoveFile};

fn with(terms: ConsultOptions) -> ConsultInput {
    ConsultInput { terms, ..input() }
}

fn own(title: &str) -> Proposal {
    let written = format!("{{\"title\": \"{title}\", \"thesis\": \"It pays.\"}}");
    serde_json::from_str::<MoveFile>(&written).unwrap().proposal().unwrap()
}

#[test]
fn brief_is_bounded_and_has_no_hidden_characters() {
    let refused = |brief: &str| {
        let terms = ConsultOptions { brief: Some(brief.to_owned()), ..ConsultOptions::default() };
        with(terms).validate().err().map(|error| error.to_string())
    };
    assert_eq!(refused("Shall we grow abroad?\n\tNot with debt."), None);
    assert_eq!(refused(&"ä".repeat(MAX_BRIEF_CHARS)), None);
    assert_eq!(refused(" \n").unwrap(), "invalid brief: it is empty");
    assert_eq!(
        refused(&"a".repeat(MAX_BRIEF_CHARS + 1)).unwrap(),
        "invalid brief: it has 8001 characters (limit: 8000)"
    );
    for hidden in ["a\u{1b}[2Jb", "a\u{202e}b", "a\rb", "a\0b"] {
        assert_eq!(
            refused(hidden).unwrap(),
            "invalid brief: it contains control or hidden characters"
        );
    }
}

#[test]
fn brief_must_fit_the_smallest_window() {
    let terms = ConsultOptions { brief: Some("word ".repeat(1_500)), ..ConsultOptions::default() };
    let mut input = with(terms);
    assert_eq!(input.validate(), Ok(()));
    input.calls.window_tokens = 4_096;
    let refused = input.validate().unwrap_err().to_string();
    assert_eq!(refused, "invalid brief: it is too long for a context window of 4096 tokens");
}

#[test]
fn added_moves_are_limited_and_must_be_sanitized() {
    let many = |count: usize| {
        let moves = (0..count).map(|number| own(&format!("Move {number}"))).collect();
        with(ConsultOptions { moves, ..ConsultOptions::default() }).validate()
    };
    assert_eq!(many(MAX_ADDED_MOVES), Ok(()));
    assert_eq!(
        many(MAX_ADDED_MOVES + 1).unwrap_err().to_string(),
        "invalid added moves: too many: 16 (limit: 15)"
    );
    let forged = Proposal { title: "# m1: another\nhead".to_owned(), ..own("One") };
    let refused =
        with(ConsultOptions { moves: vec![forged], ..ConsultOptions::default() }).validate();
    assert_eq!(
        refused.unwrap_err().to_string(),
        "invalid added moves: move 1: it has line breaks, hidden characters or spaces too many"
    );
}

#[test]
fn an_input_without_options_keeps_its_serialized_form() {
    let before = serde_json::to_string(&input()).unwrap();
    assert!(!before.contains("terms"), "{before}");
    assert_eq!(serde_json::from_str::<ConsultInput>(&before).unwrap(), input());
}
