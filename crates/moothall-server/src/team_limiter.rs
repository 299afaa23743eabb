//! Limits slow work per team, so that one team cannot block the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use moothall_core::ErrorCode;
use moothall_core::access::TeamName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ApiProblem;

/// Limits concurrent jobs per team and in total.
#[derive(Debug)]
pub(crate) struct TeamLimiter {
    per_team: usize,
    total: Arc<Semaphore>,
    teams: Mutex<BTreeMap<TeamName, Weak<Semaphore>>>,
}

/// Permission to run one job. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct TeamPermit {
    _team: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
}

impl TeamLimiter {
    pub(crate) fn new(per_team: usize, total: usize) -> Self {
        Self { per_team, total: Arc::new(Semaphore::new(total)), teams: Mutex::default() }
    }

    /// Waits for a slot of this team, at most `within`; then fails with 503 `busy`.
    pub(crate) async fn acquire(
        &self,
        team: &TeamName,
        within: Duration,
    ) -> Result<TeamPermit, ApiProblem> {
        let (of_team, total) = (self.of_team(team), Arc::clone(&self.total));
        // Acquire the team's slot first: a waiting team must not occupy slots of others.
        let both = async move {
            let team = of_team.acquire_owned().await.ok()?;
            let total = total.acquire_owned().await.ok()?;
            Some(TeamPermit { _team: team, _total: total })
        };
        tokio::time::timeout(within, both).await.ok().flatten().ok_or_else(busy)
    }

    fn of_team(&self, team: &TeamName) -> Arc<Semaphore> {
        let mut teams = self.teams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(existing) = teams.get(team).and_then(Weak::upgrade) {
            return existing;
        }
        teams.retain(|_, one| one.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.per_team));
        teams.insert(team.clone(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// 503 `busy`: the same request may succeed shortly.
pub(crate) fn busy() -> ApiProblem {
    ApiProblem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Busy,
        "too many requests of this kind are in progress",
    )
    .with_hint("try again in a second")
    .retry_after(1)
}

#[cfg(test)]
#[path = "team_limiter_tests.rs"]
mod tests;
