use super::super::support::{evidence, made_up};
use super::super::text_check::TextCheck;
use super::*;
use crate::consult::SupportCount;

#[test]
fn doing_nothing_says_where_the_company_stands_in_numbers_that_hold() {
    let evidence = evidence();
    let known =
        ConsultState { evidence: Some(Box::new(evidence.clone())), ..ConsultState::default() };
    let one = nothing(&known);
    insta::assert_snapshot!(one.markdown());
    let check = TextCheck::of_move(&evidence, &one);
    assert_eq!(check.findings, []);
    assert_eq!(check.support, SupportCount { supported: 4, total: 4 });
}

#[test]
fn doing_nothing_has_no_numbers_where_there_are_none() {
    let known = ConsultState { evidence: Some(Box::new(made_up())), ..ConsultState::default() };
    assert!(!nothing(&known).markdown().contains("F0:"));
    assert!(!nothing(&ConsultState::default()).markdown().contains("F0:"));
}
