use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

fn usd(micros: u64) -> MicroUsd {
    MicroUsd::new(micros)
}

fn amount(micros: u64, tokens: u64) -> CallCost {
    CallCost { usd: Some(usd(micros)), tokens }
}

fn dollars(cap_micros: u64) -> RunLedger {
    RunLedger::new(Budget { usd: Some(usd(cap_micros)), tokens: None })
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The result of a reservation that does not have to wait.
fn now(ledger: &RunLedger, worst_case: CallCost) -> Result<BudgetReservation<'_>, ModelFailure> {
    match poll(pin!(ledger.reserve(worst_case))) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the reservation waits"),
    }
}

#[track_caller]
fn check_refused(ledger: &RunLedger, worst_case: CallCost, kind: FailureKind, detail: &str) {
    let failure = now(ledger, worst_case).unwrap_err();
    assert_eq!(failure, ModelFailure::new(kind, detail));
}

#[test]
fn a_call_that_can_never_fit_the_budget_is_refused_with_numbers() {
    let ledger = dollars(2_500_000);
    now(&ledger, amount(1_000_000, 10)).unwrap().settle(amount(900_000, 5));
    // Other reservations are no reason to wait: it would not fit even if they were released.
    let _others = now(&ledger, amount(1_600_000, 1)).unwrap();
    check_refused(
        &ledger,
        amount(1_600_001, 0),
        FailureKind::OverBudget,
        "the call may cost $1.600001, but only $1.60 of the run's $2.50 budget is left",
    );
}

#[test]
fn calls_in_progress_count_fully_toward_the_maximum_spent() {
    let ledger = dollars(2_500_000);
    now(&ledger, amount(10, 10)).unwrap().settle(amount(3, 4));
    let settled = SpendTotals { usd: usd(3), tokens: 4, ..SpendTotals::default() };
    assert_eq!(ledger.spent_at_most(), settled);
    let under_way = now(&ledger, amount(50, 60)).unwrap();
    let expected =
        SpendTotals { usd: usd(53), tokens: 64, uncertain_usd: usd(50), unpriced_calls: 0 };
    assert_eq!((ledger.spent(), ledger.spent_at_most()), (settled, expected));
    under_way.release();
    assert_eq!(ledger.spent_at_most(), settled);
}

#[test]
fn tokens_have_their_own_cap() {
    let ledger = RunLedger::new(Budget { usd: None, tokens: Some(1000) });
    now(&ledger, amount(1, 400)).unwrap().settle(amount(1, 300));
    check_refused(
        &ledger,
        CallCost { usd: None, tokens: 701 },
        FailureKind::OverBudget,
        "the call may use 701 tokens, but only 700 of the run's 1000 are left",
    );
    assert!(now(&ledger, CallCost { usd: None, tokens: 700 }).is_ok());
}

#[test]
fn the_whole_budget_can_be_used() {
    let ledger = dollars(10);
    now(&ledger, amount(10, 1)).unwrap().settle(amount(10, 1));
    assert!(now(&ledger, amount(0, 1)).is_ok());
    check_refused(
        &ledger,
        amount(1, 1),
        FailureKind::OverBudget,
        "the call may cost $0.000001, but only $0.00 of the run's $0.00001 budget is left",
    );
}

#[test]
fn a_call_waits_while_only_other_reservations_block_it() {
    let ledger = dollars(10);
    let others = now(&ledger, amount(6, 0)).unwrap();
    let mut waiting = pin!(ledger.reserve(amount(5, 0)));
    assert!(poll(waiting.as_mut()).is_pending());
    others.settle(amount(5, 0));
    let Poll::Ready(Ok(reservation)) = poll(waiting.as_mut()) else { panic!("it still waits") };
    assert_eq!(reservation.worst_case(), amount(5, 0));
}

#[test]
fn a_waiting_call_is_refused_once_it_can_never_fit() {
    let ledger = dollars(10);
    let others = now(&ledger, amount(6, 0)).unwrap();
    let mut waiting = pin!(ledger.reserve(amount(5, 0)));
    assert!(poll(waiting.as_mut()).is_pending());
    others.settle(amount(6, 0));
    let Poll::Ready(Err(failure)) = poll(waiting.as_mut()) else { panic!("it is not refused") };
    assert_eq!(failure.kind, FailureKind::OverBudget);
}

#[test]
fn a_large_call_is_not_overtaken_by_a_small_one_that_came_later() {
    let ledger = dollars(10);
    let others = now(&ledger, amount(6, 0)).unwrap();
    let mut large = pin!(ledger.reserve(amount(8, 0)));
    assert!(poll(large.as_mut()).is_pending());
    let mut small = pin!(ledger.reserve(amount(1, 0)));
    assert!(poll(small.as_mut()).is_pending());
    drop(others);
    assert!(poll(small.as_mut()).is_pending());
    let Poll::Ready(Ok(_large)) = poll(large.as_mut()) else { panic!("the large one waits") };
    assert!(poll(small.as_mut()).is_ready());
}

#[test]
fn a_cancelled_waiting_call_unblocks_the_next_one() {
    let ledger = dollars(10);
    let _others = now(&ledger, amount(6, 0)).unwrap();
    let mut large = Box::pin(ledger.reserve(amount(8, 0)));
    assert!(poll(large.as_mut()).is_pending());
    let mut small = pin!(ledger.reserve(amount(4, 0)));
    assert!(poll(small.as_mut()).is_pending());
    drop(large);
    assert!(poll(small.as_mut()).is_ready());
}

#[test]
fn a_dropped_reservation_is_released_and_counts_nothing() {
    let ledger = dollars(10);
    drop(now(&ledger, amount(10, 7)).unwrap());
    assert_eq!(ledger.spent(), SpendTotals::default());
    assert!(now(&ledger, amount(10, 7)).is_ok());
}

#[track_caller]
fn check_spent(
    budget: Budget,
    worst_case: CallCost,
    end: impl Fn(BudgetReservation<'_>),
    expected: SpendTotals,
) {
    let ledger = RunLedger::new(budget);
    end(now(&ledger, worst_case).unwrap());
    assert_eq!(ledger.spent(), expected);
}

const CAPPED: Budget = Budget { usd: Some(MicroUsd::new(100)), tokens: Some(100) };

#[test]
fn the_usage_of_a_call_is_counted_as_spent() {
    check_spent(
        CAPPED,
        amount(50, 60),
        |reservation| reservation.settle(amount(3, 4)),
        SpendTotals { usd: usd(3), tokens: 4, ..SpendTotals::default() },
    );
}

#[test]
fn a_call_that_used_more_than_reserved_is_counted_fully() {
    check_spent(
        CAPPED,
        amount(50, 60),
        |reservation| reservation.settle(amount(51, 61)),
        SpendTotals { usd: usd(51), tokens: 61, ..SpendTotals::default() },
    );
}

#[test]
fn a_call_dropped_after_sending_counts_fully_and_as_uncertain() {
    check_spent(
        CAPPED,
        amount(50, 60),
        |reservation| {
            reservation.mark_sent();
            drop(reservation);
        },
        SpendTotals { usd: usd(50), tokens: 60, uncertain_usd: usd(50), ..SpendTotals::default() },
    );
    // A rejected request is not billed.
    check_spent(
        CAPPED,
        amount(50, 60),
        |reservation| {
            reservation.mark_sent();
            reservation.release();
        },
        SpendTotals::default(),
    );
}

#[test]
fn a_resumed_ledger_keeps_the_previous_spending() {
    let spent = SpendTotals { usd: usd(900_000), ..SpendTotals::default() };
    let ledger = RunLedger::resume(dollars(1_000_000).budget, spent);
    assert_eq!(ledger.spent(), spent);
    assert!(now(&ledger, amount(100_001, 0)).is_err());
    assert!(now(&ledger, amount(100_000, 0)).is_ok());
}

#[test]
fn a_call_with_unknown_usage_counts_fully_and_as_uncertain() {
    check_spent(
        CAPPED,
        amount(50, 60),
        |reservation| reservation.settle_unknown(),
        SpendTotals { usd: usd(50), tokens: 60, uncertain_usd: usd(50), unpriced_calls: 0 },
    );
}

#[test]
fn a_model_without_a_price_is_refused_with_a_dollar_budget() {
    check_refused(
        &dollars(u64::MAX),
        CallCost { usd: None, tokens: 1 },
        FailureKind::PriceUnknown,
        "the run has a dollar budget, but the price of this model is unknown",
    );
}

#[test]
fn a_model_without_a_price_is_counted_without_a_dollar_budget() {
    let unpriced = CallCost { usd: None, tokens: 5 };
    let expected = SpendTotals { tokens: 5, unpriced_calls: 1, ..SpendTotals::default() };
    let tokens_only = Budget { usd: None, tokens: Some(5) };
    for budget in [Budget::default(), tokens_only] {
        check_spent(budget, unpriced, |reservation| reservation.settle(unpriced), expected);
        check_spent(budget, unpriced, |reservation| reservation.settle_unknown(), expected);
    }
}

#[test]
fn a_ledger_without_caps_never_waits_and_never_overflows() {
    let ledger = RunLedger::unlimited();
    let most = amount(u64::MAX, u64::MAX);
    let first = now(&ledger, most).unwrap();
    let second = now(&ledger, most).unwrap();
    first.settle_unknown();
    second.settle_unknown();
    assert_eq!(
        ledger.spent(),
        SpendTotals {
            usd: usd(u64::MAX),
            tokens: u64::MAX,
            uncertain_usd: usd(u64::MAX),
            unpriced_calls: 0
        }
    );
}

/// Spent plus reserved, read atomically.
fn in_use(ledger: &RunLedger) -> (u64, u64) {
    let state = ledger.state();
    (
        state.spent.usd.micros() + state.reserved_usd.micros(),
        state.spent.tokens + state.reserved_tokens,
    )
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Reserve(CallCost),
    Settle { which: prop::sample::Index, used: CallCost },
    Lose { which: prop::sample::Index },
    Drop { which: prop::sample::Index },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let amounts = || (0..60_u64, 0..60_u64).prop_map(|(micros, tokens)| amount(micros, tokens));
    let which = || any::<prop::sample::Index>();
    let act = prop_oneof![
        3 => amounts().prop_map(Act::Reserve),
        1 => (which(), amounts()).prop_map(|(which, used)| Act::Settle { which, used }),
        1 => which().prop_map(|which| Act::Lose { which }),
        1 => which().prop_map(|which| Act::Drop { which }),
    ];
    prop::collection::vec(act, 0..60)
}

proptest! {
    #[test]
    fn spent_and_reserved_never_exceed_the_cap_and_spent_never_shrinks(acts in acts()) {
        let ledger = RunLedger::new(CAPPED);
        let mut held: Vec<BudgetReservation<'_>> = Vec::new();
        let (mut reserved, mut spent) = (amount(0, 0), SpendTotals::default());
        for act in acts {
            let mut take = |which: prop::sample::Index| {
                (!held.is_empty()).then(|| held.swap_remove(which.index(held.len())))
            };
            match act {
                Act::Reserve(worst_case) => {
                    // A waiting call is cancelled immediately, which must leave no trace.
                    let reservation = poll(pin!(ledger.reserve(worst_case)));
                    let micros = |amount: CallCost| amount.usd.unwrap_or_default().micros();
                    let fits = spent.usd.micros() + micros(reserved) + micros(worst_case) <= 100
                        && spent.tokens + reserved.tokens + worst_case.tokens <= 100;
                    let can_ever_fit = spent.usd.micros() + micros(worst_case) <= 100
                        && spent.tokens + worst_case.tokens <= 100;
                    match reservation {
                        Poll::Ready(Ok(reservation)) => {
                            prop_assert!(fits);
                            held.push(reservation);
                        }
                        Poll::Ready(Err(failure)) => {
                            prop_assert_eq!(failure.kind, FailureKind::OverBudget);
                            prop_assert!(!can_ever_fit);
                        }
                        Poll::Pending => prop_assert!(can_ever_fit && !fits),
                    }
                }
                Act::Settle { which, used } => {
                    if let Some(reservation) = take(which) {
                        // A provider that respects the request's limits.
                        let worst_case = reservation.worst_case();
                        let usd = used.usd.min(worst_case.usd);
                        reservation.settle(CallCost { usd, tokens: used.tokens.min(worst_case.tokens) });
                    }
                }
                Act::Lose { which } => {
                    if let Some(reservation) = take(which) {
                        reservation.settle_unknown();
                    }
                }
                Act::Drop { which } => drop(take(which)),
            }
            let sum = |tokens: fn(&CallCost) -> u64| held.iter().map(|held| tokens(&held.worst_case())).sum::<u64>();
            reserved = amount(sum(|worst_case| worst_case.usd.unwrap_or_default().micros()), sum(|worst_case| worst_case.tokens));
            let after = ledger.spent();
            prop_assert!(after.usd >= spent.usd && after.tokens >= spent.tokens);
            spent = after;
            let (micros, tokens) = in_use(&ledger);
            prop_assert_eq!(micros, spent.usd.micros() + reserved.usd.unwrap_or_default().micros());
            prop_assert_eq!(tokens, spent.tokens + reserved.tokens);
            prop_assert!(micros <= 100 && tokens <= 100);
        }
    }
}

/// Deterministic pseudo-random bits.
fn scrambled(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_stay_within_the_budget_and_all_finish() {
    const CAP: u64 = 1000;
    let ledger = Arc::new(RunLedger::new(Budget { usd: Some(usd(CAP)), tokens: Some(2 * CAP) }));
    let done = Arc::new(AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let (ledger, done) = (Arc::clone(&ledger), Arc::clone(&done));
        move || {
            let mut looks = 0_u64;
            while !done.load(Ordering::Relaxed) {
                let (micros, tokens) = in_use(&ledger);
                assert!(micros <= CAP && tokens <= 2 * CAP, "{micros} and {tokens} in use");
                looks += 1;
            }
            looks
        }
    });
    let calls: Vec<_> = (0..64_u64)
        .map(|caller| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                let mut served = 0;
                for turn in 0..100 {
                    let bits = scrambled(caller * 1000 + turn);
                    // Each reserves most of the cap, so that nearly all calls wait, and uses almost
                    // nothing, so the budget lasts.
                    let worst_case = amount(1 + bits % 700, 1 + (bits >> 16) % 1400);
                    let Ok(reservation) = ledger.reserve(worst_case).await else { continue };
                    served += 1;
                    if bits & (1 << 40) != 0 {
                        tokio::task::yield_now().await;
                    }
                    match bits >> 62 {
                        0 => drop(reservation),
                        _ => reservation.settle(amount((bits >> 50) % 64 / 63, 0)),
                    }
                }
                served
            })
        })
        .collect();
    let mut served = 0;
    for call in calls {
        // A lost wake-up shows as a call that never finishes.
        let waited = tokio::time::timeout(std::time::Duration::from_secs(30), call).await;
        served += waited.expect("a call never ends").unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 0);
    assert!(served > 3000, "only {served} of 6400 calls were served");
    let spent = ledger.spent();
    assert_eq!(in_use(&ledger), (spent.usd.micros(), spent.tokens), "room was not given back");
}

#[test]
fn a_release_concurrent_with_a_reserve_is_not_missed() {
    // Nothing else releases budget here, so a single lost wake-up makes a call wait forever.
    let ledger = dollars(10);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (hand_over, handed_over) = std::sync::mpsc::channel::<(BudgetReservation<'_>, u64)>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (reservation, pause) in handed_over {
                (0..pause).for_each(|_| std::hint::spin_loop());
                drop(reservation);
            }
        });
        runtime.block_on(async {
            for round in 0..60_000 {
                let held = ledger.reserve(amount(10, 0)).await.unwrap();
                hand_over.send((held, scrambled(round) % 64)).unwrap();
                let limit = std::time::Duration::from_secs(10);
                let waited = tokio::time::timeout(limit, ledger.reserve(amount(10, 0))).await;
                drop(waited.expect("a call waits for ever").unwrap());
            }
        });
        drop(hand_over);
    });
    assert_eq!(in_use(&ledger), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancelled_waiting_callers_do_not_block_others() {
    let ledger = Arc::new(dollars(10));
    let calls: Vec<_> = (0..200_u64)
        .map(|caller| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                for turn in 0..20 {
                    let bits = scrambled(caller * 100 + turn);
                    let worst_case = amount(1 + bits % 10, 0);
                    if bits & (1 << 30) != 0 {
                        let mut waiting = Box::pin(ledger.reserve(worst_case));
                        if let Poll::Ready(reservation) = std::future::poll_fn(|context| {
                            Poll::Ready(waiting.as_mut().poll(context))
                        })
                        .await
                        {
                            tokio::task::yield_now().await;
                            drop(reservation);
                        }
                    } else {
                        let reservation = ledger.reserve(worst_case).await.unwrap();
                        tokio::task::yield_now().await;
                        drop(reservation);
                    }
                }
            })
        })
        .collect();
    for call in calls {
        let waited = tokio::time::timeout(std::time::Duration::from_secs(30), call).await;
        waited.expect("a call never ends").unwrap();
    }
    assert_eq!(in_use(&ledger), (0, 0));
}
