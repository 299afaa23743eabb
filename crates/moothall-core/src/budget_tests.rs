use super::*;

fn reserve_request(wave: &str, attempt: &str, usd: u64) -> ReserveRequest {
    let budget = Budget { usd: Some(MicroUsd::new(100)), tokens: None };
    let (wave, attempt, usd) = (wave.to_owned(), attempt.to_owned(), MicroUsd::new(usd));
    ReserveRequest { wave, attempt, usd, tokens: 1, budget }
}

fn settle(account: &mut BudgetAccount, wave: &str, attempt: &str, usd: u64) -> SpendTotals {
    let used = SpendTotals { usd: MicroUsd::new(usd), tokens: 1, ..SpendTotals::default() };
    let (wave, attempt) = (wave.to_owned(), attempt.to_owned());
    account.settle(&Settlement::Settle { wave, attempt, used });
    account.with_reservations()
}

fn forfeit(account: &mut BudgetAccount, attempt: &str) -> SpendTotals {
    account.settle(&Settlement::Forfeit { wave: "m1".to_owned(), attempt: attempt.to_owned() });
    account.with_reservations()
}

#[test]
fn a_reserve_waits_for_other_reservations_but_not_for_spent_budget() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&reserve_request("m1", "a", 60)), ReserveDecision::Granted);
    assert_eq!(account.reserve(&reserve_request("m2", "b", 60)), ReserveDecision::Wait);
    let spent = settle(&mut account, "m1", "a", 30);
    assert_eq!(spent.usd, MicroUsd::new(30));
    assert_eq!(account.reserve(&reserve_request("m2", "b", 60)), ReserveDecision::Granted);
    settle(&mut account, "m2", "b", 60);
    let ReserveDecision::Refused(words) = account.reserve(&reserve_request("m3", "c", 11)) else {
        panic!("it fits")
    };
    assert!(words.contains("only $0.00001 of the run's $0.0001 are left"), "{words}");
    assert_eq!(account.reserve(&reserve_request("m3", "c", 10)), ReserveDecision::Granted);
}

#[test]
fn what_a_dead_worker_had_reserved_counts_as_spent() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&reserve_request("m1", "dead", 40)), ReserveDecision::Granted);
    assert_eq!(account.reserve(&reserve_request("m1", "alive", 40)), ReserveDecision::Granted);
    let spent = settle(&mut account, "m1", "alive", 5);
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(45), MicroUsd::new(40)));
    // The worker was alive after all, but its reservation is already counted as spent.
    assert_eq!(settle(&mut account, "m1", "dead", 40), spent);
}

#[test]
fn a_repeated_reserve_or_settlement_counts_once() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&reserve_request("m1", "a", 60)), ReserveDecision::Granted);
    assert_eq!(account.reserve(&reserve_request("m1", "a", 60)), ReserveDecision::Granted);
    let once = settle(&mut account, "m1", "a", 60);
    assert_eq!(settle(&mut account, "m1", "a", 60), once);
    assert_eq!(once.usd, MicroUsd::new(60));
}

#[test]
fn a_dead_workers_reservation_is_forfeited_once_its_batch_completes() {
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&reserve_request("m1", "dead", 60)), ReserveDecision::Granted);
    assert_eq!(account.reserve(&reserve_request("m2", "b", 60)), ReserveDecision::Wait);
    // An attempt cannot forfeit its own reservation.
    forfeit(&mut account, "dead");
    assert_eq!(account.reserve(&reserve_request("m2", "b", 60)), ReserveDecision::Wait);
    let spent = forfeit(&mut account, "alive");
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(60), MicroUsd::new(60)));
    // It is refused instead of waiting forever, and a smaller request is granted.
    assert!(matches!(
        account.reserve(&reserve_request("m2", "b", 60)),
        ReserveDecision::Refused(_)
    ));
    assert_eq!(account.reserve(&reserve_request("m2", "b", 40)), ReserveDecision::Granted);
    assert_eq!(forfeit(&mut account, "alive").uncertain_usd, MicroUsd::new(100), "not twice");
}

#[test]
fn a_token_limit_is_kept_to_the_token() {
    let request = |wave: &str, tokens| {
        let budget = Budget { usd: None, tokens: Some(10) };
        ReserveRequest { tokens, budget, ..reserve_request(wave, "a", 0) }
    };
    let mut account = BudgetAccount::default();
    assert_eq!(account.reserve(&request("m1", 6)), ReserveDecision::Granted);
    assert_eq!(account.reserve(&request("m2", 5)), ReserveDecision::Wait);
    assert_eq!(account.reserve(&request("m2", 4)), ReserveDecision::Granted);
    assert!(matches!(account.reserve(&request("m3", 11)), ReserveDecision::Refused(_)));
}

#[test]
fn a_refusal_names_the_limit_that_was_reached() {
    let refusal = |usd, tokens| {
        let budget = Budget { usd: Some(MicroUsd::new(100)), tokens: Some(10) };
        let request = ReserveRequest { tokens, budget, ..reserve_request("m1", "a", usd) };
        match BudgetAccount::default().reserve(&request) {
            ReserveDecision::Refused(words) => words,
            decision => panic!("{decision:?}"),
        }
    };
    let dollars = "the calls may cost $0.000101, but only $0.0001 of the run's $0.0001 are left";
    let tokens = "the calls may use 11 tokens, but only 10 of the run's 10 are left";
    assert_eq!(refusal(101, 10), dollars);
    assert_eq!(refusal(100, 11), tokens);
    assert_eq!(refusal(101, 11), dollars);
}
