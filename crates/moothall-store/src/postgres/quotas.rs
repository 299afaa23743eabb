//! Quotas per minute that all processes share, as a generic cell rate: a quota stores only the time
//! at which it is completely unused again. Units are booked in order of arrival, so large requests
//! are not starved by small ones.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use crate::StoreError;

/// Books units of a quota and returns how long to wait before they may be used.
pub(crate) async fn book(
    pool: &PgPool,
    name: &str,
    amount: u32,
    period: Duration,
    burst: u32,
) -> Result<Duration, StoreError> {
    // Rounded so that the limit is never exceeded.
    let used = period.saturating_mul(amount).as_nanos().div_ceil(1_000);
    let burst = period.saturating_mul(burst).as_nanos() / 1_000;
    let seconds = sqlx::query_scalar::<_, f64>(
        "INSERT INTO limiter_quotas AS quota (name, next) VALUES ($1, clock_timestamp() + $2)
         ON CONFLICT (name) DO UPDATE SET next = greatest(quota.next, clock_timestamp()) + $2
         RETURNING extract(epoch FROM next - clock_timestamp() - $3)::float8",
    )
    .bind(name)
    .bind(interval(used))
    .bind(interval(burst))
    .fetch_one(pool)
    .await?;
    // Negative if they may be used now.
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn interval(microseconds: u128) -> PgInterval {
    let microseconds = i64::try_from(microseconds).unwrap_or(i64::MAX);
    PgInterval { months: 0, days: 0, microseconds }
}
