//! Admission of runs and changes of their spending caps: the logic that both stores share. Each
//! store provides the SQL.

use moothall_core::access::{
    CredentialLimits, CredentialUsage, RunLimitError, TeamName, TokenId, admit as within_limits,
};
use moothall_core::{MicroUsd, RunId};

use crate::prepared_commit::PreparedCommit;
use crate::rows::{digest, run_id};
use crate::{
    AdmissionDecision, AdmissionTerms, IdempotencyKey, NewRun, RunCommit, RunState, StoreError,
};

/// A connection inside a transaction. No other run with the same key or token can start until the
/// transaction ends.
pub(crate) trait AdmissionConnection: Send {
    /// The request hash and run id of an earlier request with the same key.
    async fn find_request(
        &mut self,
        team: &TeamName,
        idempotency_key: &IdempotencyKey,
    ) -> Result<Option<(String, String)>, StoreError>;

    /// Stores the idempotency key of a run that was just created.
    async fn record_request(
        &mut self,
        run: &NewRun,
        idempotency_key: &IdempotencyKey,
    ) -> Result<(), StoreError>;

    /// Inserts the row of a run. Its team must exist and its id must be new.
    async fn insert_run(&mut self, run: &NewRun) -> Result<(), StoreError>;

    /// Writes the results of a commit to the journal of a run that was just created.
    async fn insert_results(
        &mut self,
        id: &RunId,
        prepared: PreparedCommit,
    ) -> Result<(), StoreError>;

    /// The token that started a run.
    async fn token_of(&mut self, id: &RunId) -> Result<Option<TokenId>, StoreError>;

    /// The state of a run, locked until the end of the transaction.
    async fn lock_state(&mut self, id: &RunId) -> Result<RunState, StoreError>;

    async fn set_cap(&mut self, id: &RunId, cap: Option<MicroUsd>) -> Result<(), StoreError>;

    async fn limits_of(&mut self, token: &TokenId) -> Result<CredentialLimits, StoreError>;

    async fn in_use(&mut self, day: &TokenDay<'_>) -> Result<CredentialUsage, StoreError>;
}

/// The runs that count against a token's daily limits: those started that day and those that have
/// not ended.
pub(crate) struct TokenDay<'a> {
    pub(crate) token: &'a TokenId,
    pub(crate) began_at_ms: u64,
    /// Run to exclude.
    pub(crate) exclude: &'a RunId,
}

/// Creates a run with the journal that it inherits.
pub(crate) async fn create(
    connection: &mut impl AdmissionConnection,
    run: &NewRun,
) -> Result<(), StoreError> {
    connection.insert_run(run).await?;
    if run.inherited.is_empty() {
        return Ok(());
    }
    let results = run.inherited.clone();
    let commit = RunCommit { results, at_ms: run.created_at_ms, ..RunCommit::default() };
    connection.insert_results(&run.run_id, PreparedCommit::new(commit)?).await
}

/// Creates a run if the terms allow it.
pub(crate) async fn admit(
    connection: &mut impl AdmissionConnection,
    run: &NewRun,
    terms: &AdmissionTerms,
) -> Result<AdmissionDecision, StoreError> {
    if let Some(idempotency_key) = &terms.idempotency_key
        && let Some((request, existing)) =
            connection.find_request(&run.owner.team, idempotency_key).await?
    {
        return Ok(if digest(&request)? == idempotency_key.request_sha256 {
            AdmissionDecision::AlreadyCreated(run_id(&existing)?)
        } else {
            AdmissionDecision::OtherRequest
        });
    }
    if let Some(token) = &run.owner.token {
        let limits = connection.limits_of(token).await?;
        let day = TokenDay { token, began_at_ms: terms.day_began_at_ms, exclude: &run.run_id };
        if let Err(excess) = within_limits(limits, connection.in_use(&day).await?, run.cap) {
            return Ok(AdmissionDecision::Refused(excess));
        }
    }
    create(connection, run).await?;
    if let Some(idempotency_key) = &terms.idempotency_key {
        connection.record_request(run, idempotency_key).await?;
    }
    Ok(AdmissionDecision::Created)
}

/// Changes a run's cap if the token's daily limits allow it.
pub(crate) async fn change_cap(
    connection: &mut impl AdmissionConnection,
    id: &RunId,
    cap: Option<MicroUsd>,
    day_began_at_ms: u64,
) -> Result<Result<(), RunLimitError>, StoreError> {
    let token = connection.token_of(id).await?;
    // Lock the token before the run, in the same order as `admit`, to avoid deadlocks.
    let limits = match &token {
        Some(token) => Some((token, connection.limits_of(token).await?)),
        None => None,
    };
    let state = connection.lock_state(id).await?;
    if state.is_terminal() {
        return Err(StoreError::RunEnded { run_id: id.clone(), state });
    }
    if let Some((token, limits)) = limits {
        // The run already counts as one of the concurrent runs.
        let limits = CredentialLimits { runs_at_once: None, ..limits };
        let day = TokenDay { token, began_at_ms: day_began_at_ms, exclude: id };
        if let Err(excess) = within_limits(limits, connection.in_use(&day).await?, cap) {
            return Ok(Err(excess));
        }
    }
    connection.set_cap(id, cap).await?;
    Ok(Ok(()))
}
