use super::*;

#[test]
fn a_narrow_terminal_shows_titles_and_scores_only() {
    let layout = |title, is_narrow| RowLayout { title, is_narrow };
    assert_eq!(RowLayout::of(120), layout(64, false));
    assert_eq!(RowLayout::of(80), layout(24, false));
    assert_eq!(RowLayout::of(40), layout(14, true));
    assert_eq!(RowLayout::of(20), layout(10, true));
}

#[test]
fn the_dot_of_an_interval_is_where_the_score_is() {
    assert_eq!(bar(74, 86, 98), "──●──");
    assert_eq!(bar(74, 74, 98), "●────");
    assert_eq!(bar(74, 98, 98), "────●");
    assert_eq!(bar(80, 80, 80), "●────");
}
