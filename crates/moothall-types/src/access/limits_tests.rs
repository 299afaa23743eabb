use super::*;

fn usd(cents: u64) -> MicroUsd {
    MicroUsd::new(cents * 10_000)
}

#[track_caller]
fn check(
    limits: CredentialLimits,
    in_use: CredentialUsage,
    cap: Option<MicroUsd>,
    expected: Result<(), RunLimitError>,
) {
    assert_eq!(admit(limits, in_use, cap), expected);
}

#[test]
fn no_limit_admits_everything() {
    let much = CredentialUsage { runs: u32::MAX, usd: MicroUsd::new(u64::MAX), unbounded: true };
    check(CredentialLimits::default(), much, None, Ok(()));
}

#[test]
fn a_credential_has_no_higher_limit_than_its_creator() {
    let creator = CredentialLimits {
        runs_at_once: Some(2),
        usd_a_day: Some(usd(500)),
        requests_a_minute: None,
    };
    let wanted =
        CredentialLimits { runs_at_once: Some(9), usd_a_day: None, requests_a_minute: Some(60) };
    let granted = CredentialLimits { requests_a_minute: Some(60), ..creator };
    assert_eq!(wanted.capped_by(creator), granted);
    let lower = CredentialLimits { runs_at_once: Some(1), ..creator };
    assert_eq!(lower.capped_by(creator), lower);
}

#[test]
fn concurrent_runs_of_a_credential_are_limited() {
    let limits = CredentialLimits { runs_at_once: Some(2), ..CredentialLimits::default() };
    check(limits, CredentialUsage { runs: 1, ..CredentialUsage::default() }, None, Ok(()));
    let full = Err(RunLimitError::Runs { running: 2, allowed: 2 });
    check(limits, CredentialUsage { runs: 2, ..CredentialUsage::default() }, None, full);
    let none = CredentialLimits { runs_at_once: Some(0), ..CredentialLimits::default() };
    check(
        none,
        CredentialUsage::default(),
        None,
        Err(RunLimitError::Runs { running: 0, allowed: 0 }),
    );
}

#[test]
fn the_maximum_cost_of_a_run_must_fit_the_remaining_daily_budget() {
    let allowed = usd(1_000);
    let limits = CredentialLimits { usd_a_day: Some(allowed), ..CredentialLimits::default() };
    let in_use = CredentialUsage { usd: usd(400), ..CredentialUsage::default() };
    check(limits, in_use, Some(usd(600)), Ok(()));
    let wanted = usd(601);
    check(
        limits,
        in_use,
        Some(wanted),
        Err(RunLimitError::Spend { wanted, left: usd(600), allowed }),
    );
    let over = CredentialUsage { usd: usd(2_000), ..CredentialUsage::default() };
    let wanted = usd(1);
    check(
        limits,
        over,
        Some(wanted),
        Err(RunLimitError::Spend { wanted, left: MicroUsd::ZERO, allowed }),
    );
}

#[test]
fn a_run_without_a_budget_is_refused_if_spending_is_limited() {
    let allowed = usd(1_000);
    let limits = CredentialLimits { usd_a_day: Some(allowed), ..CredentialLimits::default() };
    check(limits, CredentialUsage::default(), None, Err(RunLimitError::Uncapped { allowed }));
    let unbounded = CredentialUsage { unbounded: true, ..CredentialUsage::default() };
    check(limits, unbounded, Some(usd(1)), Err(RunLimitError::Uncapped { allowed }));
}

#[test]
fn the_rate_limiter_allows_a_burst_of_one_minute() {
    let (mut pace, now) = (CredentialRateLimiter::default(), 7_000_000_000);
    for _ in 0..60 {
        assert_eq!(pace.take(now, 60), Ok(()));
    }
    assert_eq!(pace.take(now, 60), Err(RateLimitError { seconds: 1 }));
    // A refused request does not count.
    assert_eq!(pace.take(now, 60), Err(RateLimitError { seconds: 1 }));
    assert_eq!(pace.take(now + 999_999, 60), Err(RateLimitError { seconds: 1 }));
    assert_eq!(pace.take(now + 1_000_000, 60), Ok(()));
    assert_eq!(pace.take(now + 1_000_000, 60), Err(RateLimitError { seconds: 1 }));
    assert!(!pace.is_idle(now + 60_999_999));
    assert!(pace.is_idle(now + 61_000_000));
}

#[test]
fn the_rate_limiter_reports_the_remaining_wait() {
    let mut pace = CredentialRateLimiter::default();
    assert_eq!(pace.take(0, 1), Ok(()));
    assert_eq!(pace.take(0, 1), Err(RateLimitError { seconds: 60 }));
    assert_eq!(pace.take(59_000_001, 1), Err(RateLimitError { seconds: 1 }));
    assert_eq!(pace.take(60_000_000, 1), Ok(()));
    assert_eq!(CredentialRateLimiter::default().take(0, 0), Err(RateLimitError { seconds: 60 }));
}
