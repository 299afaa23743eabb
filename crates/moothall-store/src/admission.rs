//! How a run begins and how its cap changes: what both stores decide alike. The statements are theirs.

use moothall_core::access::{Excess, InUse, Limits, TeamName, TokenId, admit as within_limits};
use moothall_core::{MicroUsd, RunId};

use crate::rows::{digest, run_id};
use crate::{Admission, NewRun, Once, RunState, StoreError, Terms, rules};

/// A connection inside of a transaction. Nobody else starts a run with the same key or token until it ends.
pub(crate) trait Admitting: Send {
    /// The digest and the run of a request that came with the same key before.
    async fn asked_before(
        &mut self,
        team: &TeamName,
        once: &Once,
    ) -> Result<Option<(String, String)>, StoreError>;

    /// Remembers the request of a run that was just made.
    async fn remember(&mut self, run: &NewRun, once: &Once) -> Result<(), StoreError>;

    /// Makes a run whose team is there and whose id is new.
    async fn make(&mut self, run: &NewRun) -> Result<(), StoreError>;

    /// The token that a run began with.
    async fn token_of(&mut self, id: &RunId) -> Result<Option<TokenId>, StoreError>;

    /// The state of a run that nobody else changes until the end.
    async fn held_state(&mut self, id: &RunId) -> Result<RunState, StoreError>;

    async fn set_cap(&mut self, id: &RunId, cap: Option<MicroUsd>) -> Result<(), StoreError>;

    async fn limits_of(&mut self, token: &TokenId) -> Result<Limits, StoreError>;

    async fn in_use(&mut self, day: &Day<'_>) -> Result<InUse, StoreError>;
}

/// The runs of a token that count in a day: those that began in it, and those that have not ended.
pub(crate) struct Day<'a> {
    pub(crate) token: &'a TokenId,
    pub(crate) began_at_ms: u64,
    /// This one does not count.
    pub(crate) but: &'a RunId,
}

/// Makes a run on terms.
pub(crate) async fn admit(
    connection: &mut impl Admitting,
    run: &NewRun,
    terms: &Terms,
) -> Result<Admission, StoreError> {
    rules::check_key(terms)?;
    if let Some(once) = &terms.once
        && let Some((request, made)) = connection.asked_before(&run.owner.team, once).await?
    {
        return Ok(if digest(&request)? == once.request_sha256 {
            Admission::MadeBefore(run_id(&made)?)
        } else {
            Admission::OtherRequest
        });
    }
    if let Some(token) = &run.owner.token {
        let limits = connection.limits_of(token).await?;
        let day = Day { token, began_at_ms: terms.day_began_at_ms, but: &run.run_id };
        if let Err(excess) = within_limits(limits, connection.in_use(&day).await?, run.cap) {
            return Ok(Admission::Refused(excess));
        }
    }
    connection.make(run).await?;
    if let Some(once) = &terms.once {
        connection.remember(run, once).await?;
    }
    Ok(Admission::Made)
}

/// Gives a run another cap, if the rest of its token's day leaves room for it.
pub(crate) async fn change_cap(
    connection: &mut impl Admitting,
    id: &RunId,
    cap: Option<MicroUsd>,
    day_began_at_ms: u64,
) -> Result<Result<(), Excess>, StoreError> {
    let token = connection.token_of(id).await?;
    // The token before the run, as for a run that is made: two who need both never wait for each other.
    let limits = match &token {
        Some(token) => Some((token, connection.limits_of(token).await?)),
        None => None,
    };
    let state = connection.held_state(id).await?;
    if state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state });
    }
    if let Some((token, limits)) = limits {
        // It is one of the runs at once already.
        let limits = Limits { runs_at_once: None, ..limits };
        let day = Day { token, began_at_ms: day_began_at_ms, but: id };
        if let Err(excess) = within_limits(limits, connection.in_use(&day).await?, cap) {
            return Ok(Err(excess));
        }
    }
    connection.set_cap(id, cap).await?;
    Ok(Ok(()))
}
