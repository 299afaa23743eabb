use super::{
    ChangeDirection, LossMention, NumberComparator, clause_before, comparator, direction, loss,
};

/// Checks the words around a number; `#` marks its position.
#[track_caller]
fn check(sentence: &str, expected: (NumberComparator, ChangeDirection, LossMention)) {
    let (left, right) = sentence.split_once('#').unwrap();
    let reach = clause_before(left);
    let loss = loss(reach, right);
    assert_eq!((comparator(reach), direction(reach, right, loss), loss), expected, "{sentence}");
}

const EXACT: NumberComparator = NumberComparator::Exact;
const UNSAID: (ChangeDirection, LossMention) = (ChangeDirection::Unsaid, LossMention::Unsaid);

#[test]
fn comparators_before_a_number_are_recognised() {
    for (words, expected) in [
        ("about $#", NumberComparator::About),
        ("roughly us$ #", NumberComparator::About),
        ("just over #", NumberComparator::Over),
        ("more than a #", NumberComparator::Over),
        ("just under $#", NumberComparator::Nearly),
        ("nearly #", NumberComparator::Nearly),
        ("no more than #", NumberComparator::Under),
        ("turnover of #", NumberComparator::Exact),
        ("inventory turnover #", NumberComparator::Exact),
        ("an awesome #", NumberComparator::Exact),
    ] {
        check(words, (expected, UNSAID.0, UNSAID.1));
    }
}

#[test]
fn words_for_increases_and_decreases_are_recognised() {
    for (words, expected) in [
        ("revenue grew #", ChangeDirection::Up),
        ("margins narrowed by # to", ChangeDirection::Down),
        ("revenue rises #", ChangeDirection::Up),
        ("revenue soars #", ChangeDirection::Up),
        ("revenue surges #", ChangeDirection::Up),
        ("a new plant lifts revenue #", ChangeDirection::Up),
        ("revenue outgrows costs by #", ChangeDirection::Up),
        ("revenue falls #", ChangeDirection::Down),
        ("revenue tumbles #", ChangeDirection::Down),
        ("revenue slides #", ChangeDirection::Down),
        ("the segment sheds #", ChangeDirection::Down),
        ("a # increase", ChangeDirection::Up),
        ("a # year-over-year decline", ChangeDirection::Down),
        ("declined 2.8% before recovering #", ChangeDirection::Up),
        ("fell 5% and #", ChangeDirection::Down),
        ("fell 5% and margins were #", ChangeDirection::Unsaid),
        ("growth slowed to #", ChangeDirection::Unsaid),
        ("up from #", ChangeDirection::Unsaid),
        ("revenue fell #, more than peers", ChangeDirection::Down),
        ("revenue was #", ChangeDirection::Unsaid),
    ] {
        check(words, (EXACT, expected, LossMention::Unsaid));
    }
}

#[test]
fn words_for_losses_are_recognised() {
    for (words, expected) in [
        ("a net loss of #", LossMention::Beside),
        ("a net loss per diluted share of $#", LossMention::Beside),
        ("a # net loss", LossMention::Beside),
        ("negative #", LossMention::Beside),
        ("a net loss of 1.3 billion, free cash flow of #", LossMention::Nearby),
        ("a net loss of 1.3 billion and cash of #", LossMention::Unsaid),
        ("the provision for credit losses was #", LossMention::Unsaid),
        ("operations used #", LossMention::Nearby),
        ("net debt of #", LossMention::Nearby),
        ("net loss: #", LossMention::Beside),
        ("net losses of 836 million and #", LossMention::Beside),
        ("a net loss of 430 million against #", LossMention::Beside),
    ] {
        check(words, (EXACT, ChangeDirection::Unsaid, expected));
    }
}

#[test]
fn an_improved_loss_is_a_decrease() {
    check("the net loss improved by #", (EXACT, ChangeDirection::Down, LossMention::Beside));
    check("the margin improved by #", (EXACT, ChangeDirection::Up, LossMention::Unsaid));
}
