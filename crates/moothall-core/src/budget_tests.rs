use super::*;

fn wish(wave: &str, attempt: &str, usd: u64) -> ReserveRequest {
    let budget = Budget { usd: Some(MicroUsd::new(100)), tokens: None };
    let (wave, attempt, usd) = (wave.to_owned(), attempt.to_owned(), MicroUsd::new(usd));
    ReserveRequest { wave, attempt, usd, tokens: 1, budget }
}

fn settle(account: &mut BudgetAccount, wave: &str, attempt: &str, usd: u64) -> SpendTotals {
    let used = SpendTotals { usd: MicroUsd::new(usd), tokens: 1, ..SpendTotals::default() };
    let (wave, attempt) = (wave.to_owned(), attempt.to_owned());
    account.hear(&Settlement::Settle { wave, attempt, used });
    account.at_most()
}

fn forfeit(account: &mut BudgetAccount, attempt: &str) -> SpendTotals {
    account.hear(&Settlement::Forfeit { wave: "m1".to_owned(), attempt: attempt.to_owned() });
    account.at_most()
}

#[test]
fn what_only_others_reserved_is_waited_for_and_what_is_spent_is_refused() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&wish("m1", "a", 60)), Room::Granted);
    assert_eq!(account.reserve(&wish("m2", "b", 60)), Room::Wait);
    let spent = settle(&mut account, "m1", "a", 30);
    assert_eq!(spent.usd, MicroUsd::new(30));
    assert_eq!(account.reserve(&wish("m2", "b", 60)), Room::Granted);
    settle(&mut account, "m2", "b", 60);
    let Room::Refused(words) = account.reserve(&wish("m3", "c", 11)) else { panic!("it fits") };
    assert!(words.contains("only $0.00001 of the run's $0.0001 are left"), "{words}");
    assert_eq!(account.reserve(&wish("m3", "c", 10)), Room::Granted);
}

#[test]
fn what_a_dead_worker_had_reserved_counts_as_spent() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&wish("m1", "dead", 40)), Room::Granted);
    assert_eq!(account.reserve(&wish("m1", "alive", 40)), Room::Granted);
    let spent = settle(&mut account, "m1", "alive", 5);
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(45), MicroUsd::new(40)));
    // The worker was alive after all, but its reservation is already counted as spent.
    assert_eq!(settle(&mut account, "m1", "dead", 40), spent);
}

#[test]
fn a_wish_or_a_bill_that_is_told_twice_counts_once() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&wish("m1", "a", 60)), Room::Granted);
    assert_eq!(account.reserve(&wish("m1", "a", 60)), Room::Granted);
    let once = settle(&mut account, "m1", "a", 60);
    assert_eq!(settle(&mut account, "m1", "a", 60), once);
    assert_eq!(once.usd, MicroUsd::new(60));
}

#[test]
fn what_a_dead_worker_had_reserved_is_in_nobodys_way_when_its_wave_has_all_answers() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&wish("m1", "dead", 60)), Room::Granted);
    assert_eq!(account.reserve(&wish("m2", "b", 60)), Room::Wait);
    // An attempt cannot forfeit its own reservation.
    forfeit(&mut account, "dead");
    assert_eq!(account.reserve(&wish("m2", "b", 60)), Room::Wait);
    let spent = forfeit(&mut account, "alive");
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(60), MicroUsd::new(60)));
    // It is refused instead of waiting forever, and a smaller request is granted.
    assert!(matches!(account.reserve(&wish("m2", "b", 60)), Room::Refused(_)));
    assert_eq!(account.reserve(&wish("m2", "b", 40)), Room::Granted);
    assert_eq!(forfeit(&mut account, "alive").uncertain_usd, MicroUsd::new(100), "not twice");
}
