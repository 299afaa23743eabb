use super::super::support::{evidence, made_up};
use super::super::text_check::TextCheck;
use super::*;
use crate::consult::SupportCount;

#[test]
fn the_do_nothing_move_cites_only_supported_numbers() {
    let evidence = evidence();
    let known =
        ConsultState { evidence: Some(Box::new(evidence.clone())), ..ConsultState::default() };
    let one = do_nothing_move(&known);
    insta::assert_snapshot!(one.markdown());
    let check = TextCheck::of_move(&evidence, &one);
    assert_eq!(check.findings, []);
    assert_eq!(check.support, SupportCount { supported: 4, total: 4 });
}

#[test]
fn the_do_nothing_move_has_no_numbers_without_a_fact_sheet() {
    let known = ConsultState { evidence: Some(Box::new(made_up())), ..ConsultState::default() };
    assert!(!do_nothing_move(&known).markdown().contains("F0:"));
    assert!(!do_nothing_move(&ConsultState::default()).markdown().contains("F0:"));
}
