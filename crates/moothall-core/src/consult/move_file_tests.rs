use super::*;

#[test]
fn title_and_thesis_are_enough() {
    let written: MoveFile =
        serde_json::from_str(r#"{"title": "Sell  the\nold plant", "thesis": "It is idle."}"#)
            .unwrap();
    let proposal = written.proposal().unwrap();
    assert_eq!(
        proposal,
        Proposal {
            title: "Sell the old plant".to_owned(),
            thesis: "It is idle.".to_owned(),
            actions: Vec::new(),
            what_must_be_true: Vec::new(),
            evidence: Vec::new(),
            risks: Vec::new(),
            cost: "not said".to_owned(),
            horizon: "not said".to_owned(),
            kill_criteria: Vec::new(),
        }
    );
    let again = MoveFile::from(&proposal);
    assert_eq!((again.cost.as_str(), again.horizon.as_str()), ("", ""));
    assert_eq!(again.proposal().unwrap(), proposal);
}

#[test]
fn empty_or_too_long_move_fields_are_reported_and_not_truncated() {
    let written = MoveFile {
        title: "t".repeat(121),
        thesis: " ".to_owned(),
        actions: vec!["step".to_owned(); 9],
        what_must_be_true: Vec::new(),
        evidence: Vec::new(),
        risks: vec![String::new()],
        cost: String::new(),
        horizon: String::new(),
        kill_criteria: Vec::new(),
    };
    assert_eq!(
        written.proposal().unwrap_err().to_string(),
        "`title` has 121 characters; 120 are the most; `thesis` is empty; \
         `actions` has 9 entries; 0 to 8 are wanted; `risks` is empty"
    );
}

#[test]
fn an_unknown_field_in_a_move_file_is_refused() {
    let read = serde_json::from_str::<MoveFile>(r#"{"title": "a", "thesis": "b", "rank": 1}"#);
    assert!(read.is_err());
}
