use super::*;
use crate::consult::MoveFile;

fn veto(by: &str, why: &str) -> ReviewChange {
    let what = ReviewAction::Veto { move_id: "m3".to_owned(), why: why.to_owned() };
    ReviewChange { by: by.to_owned(), at_ms: 1, what }
}

#[test]
fn reviewer_names_and_reasons_are_limited_and_have_no_hidden_text() {
    assert_eq!(veto("Ada", "").fault(), None);
    assert_eq!(veto("Ada", "We tried it.").fault(), None);
    for unfit in
        [veto("", ""), veto(" Ada", ""), veto("A\u{202e}da", ""), veto(&"a".repeat(81), "")]
    {
        assert_eq!(
            unfit.fault().unwrap(),
            "a name has 1 to 80 characters, none of them hidden",
            "{unfit:?}"
        );
    }
    for unfit in [veto("Ada", "a\nb"), veto("Ada", &"a".repeat(501))] {
        assert_eq!(
            unfit.fault().unwrap(),
            "a reason has at most 500 characters, none of them hidden",
            "{unfit:?}"
        );
    }
}

#[test]
fn question_about_other_moves_has_another_hash() {
    let question = |title: &str| {
        let written: MoveFile =
            serde_json::from_value(serde_json::json!({"title": title, "thesis": "It pays."}))
                .unwrap();
        let proposal = written.proposal().unwrap();
        let one = Move { move_id: "m1".to_owned(), analyst: "analyst_1".to_owned(), proposal };
        ReviewQuestion::ReviewMoves { moves: vec![one] }
    };
    assert_eq!(question("Build").hash().unwrap(), question("Build").hash().unwrap());
    assert_ne!(question("Build").hash().unwrap(), question("Sell").hash().unwrap());
    assert_eq!(question("Build").describe(), "1 move needs review before its debate");
}
