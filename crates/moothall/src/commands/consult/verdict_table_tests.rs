use super::*;

#[test]
fn the_dot_of_an_interval_is_where_the_score_is() {
    assert_eq!(bar(74, 86, 98), "──●──");
    assert_eq!(bar(74, 74, 98), "●────");
    assert_eq!(bar(74, 98, 98), "────●");
    assert_eq!(bar(80, 80, 80), "●────");
}
