//! Quotas per minute that all processes share, as a generic cell rate: a quota stores only the time
//! at which it is completely unused again.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use crate::StoreError;

/// Takes units of a quota, or returns how long to wait for them.
pub(crate) async fn take(
    pool: &PgPool,
    name: &str,
    amount: u32,
    period: Duration,
    burst: u32,
) -> Result<Option<Duration>, StoreError> {
    let used = interval(period.saturating_mul(amount));
    // Units that may be in use when these are taken.
    let ahead = interval(period.saturating_mul(burst.saturating_sub(amount)));
    let taken = sqlx::query_scalar::<_, i32>(
        "INSERT INTO limiter_quotas AS quota (name, next) VALUES ($1, clock_timestamp() + $2)
         ON CONFLICT (name) DO UPDATE SET next = greatest(quota.next, clock_timestamp()) + $2
         WHERE quota.next - clock_timestamp() <= $3
         RETURNING 1",
    )
    .bind(name)
    .bind(used)
    .bind(ahead)
    .fetch_optional(pool)
    .await?;
    if taken.is_some() {
        return Ok(None);
    }
    let seconds = sqlx::query_scalar::<_, f64>(
        "SELECT extract(epoch FROM next - clock_timestamp() - $2)::float8
         FROM limiter_quotas WHERE name = $1",
    )
    .bind(name)
    .bind(ahead)
    .fetch_optional(pool)
    .await?;
    let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(Some(wait.unwrap_or_default()))
}

fn interval(length: Duration) -> PgInterval {
    let microseconds = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
    PgInterval { months: 0, days: 0, microseconds }
}
