use moothall_models::Budget;

use super::*;

fn wish(wave: &str, attempt: &str, usd: u64) -> Wish {
    let budget = Budget { usd: Some(MicroUsd::new(100)), tokens: None };
    let reserve = Reserve { wave: wave.to_owned(), usd: MicroUsd::new(usd), tokens: 1, budget };
    Wish { reserve, attempt: attempt.to_owned() }
}

fn settle(wave: &str, attempt: &str, usd: u64) -> Settle {
    let used = Spent { usd: MicroUsd::new(usd), tokens: 1, ..Spent::default() };
    Settle { wave: wave.to_owned(), attempt: attempt.to_owned(), used }
}

#[test]
fn what_only_others_reserved_is_waited_for_and_what_is_spent_is_refused() {
    let mut account = Account::default();
    assert_eq!(account.reserve(wish("m1", "a", 60)), Room::Granted);
    assert_eq!(account.reserve(wish("m2", "b", 60)), Room::Wait);
    let spent = account.settle(settle("m1", "a", 30));
    assert_eq!(spent.usd, MicroUsd::new(30));
    assert_eq!(account.reserve(wish("m2", "b", 60)), Room::Granted);
    account.settle(settle("m2", "b", 60));
    let Room::Refused(words) = account.reserve(wish("m3", "c", 11)) else { panic!("it fits") };
    assert!(words.contains("only $0.00001 of the run's $0.0001 are left"), "{words}");
    assert_eq!(account.reserve(wish("m3", "c", 10)), Room::Granted);
}

#[test]
fn what_a_dead_worker_had_reserved_counts_as_spent() {
    let mut account = Account::default();
    assert_eq!(account.reserve(wish("m1", "dead", 40)), Room::Granted);
    assert_eq!(account.reserve(wish("m1", "alive", 40)), Room::Granted);
    let spent = account.settle(settle("m1", "alive", 5));
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(45), MicroUsd::new(40)));
    // It was not dead after all; its bill is counted already.
    assert_eq!(account.settle(settle("m1", "dead", 40)), spent);
}

#[test]
fn a_wish_or_a_bill_that_is_told_twice_counts_once() {
    let mut account = Account::default();
    assert_eq!(account.reserve(wish("m1", "a", 60)), Room::Granted);
    assert_eq!(account.reserve(wish("m1", "a", 60)), Room::Granted);
    let once = account.settle(settle("m1", "a", 60));
    assert_eq!(account.settle(settle("m1", "a", 60)), once);
    assert_eq!(once.usd, MicroUsd::new(60));
}

#[test]
fn what_a_dead_worker_had_reserved_is_in_nobodys_way_when_its_wave_has_all_answers() {
    let mut account = Account::default();
    assert_eq!(account.reserve(wish("m1", "dead", 60)), Room::Granted);
    assert_eq!(account.reserve(wish("m2", "b", 60)), Room::Wait);
    let found = |attempt: &str| Forfeit { wave: "m1".to_owned(), attempt: attempt.to_owned() };
    // Nobody gives up what is their own.
    account.forfeit(&found("dead"));
    assert_eq!(account.reserve(wish("m2", "b", 60)), Room::Wait);
    let spent = account.forfeit(&found("alive"));
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(60), MicroUsd::new(60)));
    // It fails for good instead of waiting for ever, and what fits is granted.
    assert!(matches!(account.reserve(wish("m2", "b", 60)), Room::Refused(_)));
    assert_eq!(account.reserve(wish("m2", "b", 40)), Room::Granted);
    assert_eq!(account.forfeit(&found("alive")), account.at_most());
}
