use super::*;

#[test]
fn a_rejection_says_that_the_model_is_asked_again_only_if_that_is_certain() {
    let problems = ["no program".to_owned(), "two\nlines".to_owned()];
    let said = |id: &str| rejection(&id.parse().unwrap(), &problems);
    for id in ["attempt-1/write", "F1", "m2/score/D1", "analyst_1/propose-2"] {
        assert_eq!(said(id), "no program; two lines; asking again", "{id}");
    }
    for id in
        ["answer", "F1/rewrite", "m2/score/D1/ask-2", "analyst_1/propose-3", "attempt-1/choose"]
    {
        assert_eq!(said(id), "no program; two lines", "{id}");
    }
}
