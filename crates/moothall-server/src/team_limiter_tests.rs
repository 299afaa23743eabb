use moothall_core::ErrorCode;

use super::*;

const SOON: Duration = Duration::from_millis(50);

/// Regression: many exports of one team took every blocking thread, and those of other teams timed
/// out.
#[tokio::test]
async fn team_at_its_limit_waits_while_others_are_served() {
    let limiter = TeamLimiter::new(2, 3);
    let team = |name: &str| name.parse::<TeamName>().unwrap();
    let first = limiter.acquire(&team("north"), SOON).await.unwrap();
    let _second = limiter.acquire(&team("north"), SOON).await.unwrap();
    let refused = limiter.acquire(&team("north"), SOON).await.unwrap_err();
    assert_eq!((refused.status, refused.code), (503, ErrorCode::Busy));
    let other = limiter.acquire(&team("south"), SOON).await.unwrap();
    // All slots are taken now, for every team.
    assert!(limiter.acquire(&team("west"), SOON).await.is_err());
    drop(other);
    assert!(limiter.acquire(&team("west"), SOON).await.is_ok());
    drop(first);
    assert!(limiter.acquire(&team("north"), SOON).await.is_ok());
}
