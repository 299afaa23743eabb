use super::{Comparator, Direction, Loss, comparator, direction, loss, reach_of};

/// The words to the left and to the right of a number, which stands at `#`.
#[track_caller]
fn check(sentence: &str, expected: (Comparator, Direction, Loss)) {
    let (left, right) = sentence.split_once('#').unwrap();
    let reach = reach_of(left);
    let loss = loss(reach, right);
    assert_eq!((comparator(reach), direction(reach, right, loss), loss), expected, "{sentence}");
}

const EXACT: Comparator = Comparator::Exact;
const UNSAID: (Direction, Loss) = (Direction::Unsaid, Loss::Unsaid);

#[test]
fn words_say_how_exact_a_number_is() {
    for (words, expected) in [
        ("about $#", Comparator::About),
        ("roughly us$ #", Comparator::About),
        ("just over #", Comparator::Over),
        ("more than a #", Comparator::Over),
        ("just under $#", Comparator::Nearly),
        ("nearly #", Comparator::Nearly),
        ("no more than #", Comparator::Under),
        ("turnover of #", Comparator::Exact),
        ("inventory turnover #", Comparator::Exact),
        ("an awesome #", Comparator::Exact),
    ] {
        check(words, (expected, UNSAID.0, UNSAID.1));
    }
}

#[test]
fn words_point_up_or_down() {
    for (words, expected) in [
        ("revenue grew #", Direction::Up),
        ("margins narrowed by # to", Direction::Down),
        ("a # increase", Direction::Up),
        ("a # year-over-year decline", Direction::Down),
        ("declined 2.8% before recovering #", Direction::Up),
        ("fell 5% and #", Direction::Down),
        ("fell 5% and margins were #", Direction::Unsaid),
        ("growth slowed to #", Direction::Unsaid),
        ("up from #", Direction::Unsaid),
        ("revenue fell #, more than peers", Direction::Down),
        ("revenue was #", Direction::Unsaid),
    ] {
        check(words, (EXACT, expected, Loss::Unsaid));
    }
}

#[test]
fn words_call_a_number_a_loss() {
    for (words, expected) in [
        ("a net loss of #", Loss::Beside),
        ("a net loss per diluted share of $#", Loss::Beside),
        ("a # net loss", Loss::Beside),
        ("negative #", Loss::Beside),
        ("a net loss of 1.3 billion, free cash flow of #", Loss::Nearby),
        ("a net loss of 1.3 billion and cash of #", Loss::Unsaid),
        ("the provision for credit losses was #", Loss::Unsaid),
        ("operations used #", Loss::Nearby),
        ("net debt of #", Loss::Nearby),
        ("net loss: #", Loss::Beside),
        ("net losses of 836 million and #", Loss::Beside),
        ("a net loss of 430 million against #", Loss::Beside),
    ] {
        check(words, (EXACT, Direction::Unsaid, expected));
    }
}

#[test]
fn a_better_loss_is_a_smaller_one() {
    check("the net loss improved by #", (EXACT, Direction::Down, Loss::Beside));
    check("the margin improved by #", (EXACT, Direction::Up, Loss::Unsaid));
}
