//! The interface between the server and the program that executes runs.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::Pin;

use moothall_core::access::RunOwner;
use moothall_core::report::document::ReportDocument;
use moothall_core::{RunId, Sha256Hex};
use moothall_store::RunRow;
use serde_json::Value;

use crate::ApiProblem;
use crate::dto::{
    CheckTextRequest, CommitteeList, DoctorResponse, EditMovesRequest, FactsQuery, ForkRunRequest,
    ResumeRunRequest, ServerSettings, StartConsultRequest, StartRunRequest, TickerList,
};

/// Future returned by [`RunService`] methods.
pub type RunServiceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ApiProblem>> + Send + 'a>>;

/// A request to start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    /// What to run.
    pub request: StartRunRequest,
    /// The terms of the new run.
    pub terms: StartTerms,
}

/// The terms under which a run is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartTerms {
    /// The owner of the new run.
    pub owner: RunOwner,
    /// Idempotency key, if the client sent one.
    pub idempotency_key: Option<StartIdempotencyKey>,
}

/// Idempotency key: repeated requests with the same key start one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartIdempotencyKey {
    /// The key chosen by the client.
    pub key: String,
    /// Hash of the request, to detect a key reused for another request.
    pub request_sha256: Sha256Hex,
}

/// Result of an [`StartRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// A new run was started.
    Now(RunId),
    /// An earlier request with the same idempotency key started this run.
    Before(RunId),
}

/// The program behind the server. It owns the configuration, keys, models and sandboxes, and starts
/// runs the same way as the command line.
///
/// Implementations must ensure:
/// - Requests are untrusted: nothing in a request can name a file on this machine.
/// - When `start` or `resume` completes, the run is active and continues in the background.
/// - Every commit of an active run is reported to the [`crate::EventFeed`].
pub trait RunService: Debug + Send + Sync {
    /// Starts a run. Requests are validated completely before the run is created.
    fn start(&self, order: StartRequest) -> RunServiceFuture<'_, StartOutcome>;

    /// Starts a fork of a consultation. `by` is the author of edited moves.
    fn fork(
        &self,
        parent: RunRow,
        request: ForkRunRequest,
        by: String,
        terms: StartTerms,
    ) -> RunServiceFuture<'_, StartOutcome>;

    /// Resumes a paused or interrupted run.
    fn resume(&self, row: RunRow, request: ResumeRunRequest) -> RunServiceFuture<'_, ()>;

    /// Asks the process that executes the run to cancel it; cancels it directly if no process does.
    fn cancel(&self, row: RunRow) -> RunServiceFuture<'_, ()>;

    /// Deletes a run that has ended, with everything it stored.
    fn delete(&self, row: RunRow) -> RunServiceFuture<'_, ()>;

    /// Returns which of these runs are active, in this or another process.
    fn driven(&self, rows: Vec<RunRow>) -> RunServiceFuture<'_, BTreeSet<RunId>>;

    /// Returns the moves of a consultation as they would be debated, after applying `change`: the
    /// edit and the name of its author.
    fn moves(
        &self,
        row: RunRow,
        change: Option<(EditMovesRequest, String)>,
    ) -> RunServiceFuture<'_, Value>;

    /// Estimates the calls and cost of a consultation.
    fn estimate(&self, request: StartConsultRequest) -> RunServiceFuture<'_, Value>;

    /// Returns the facts a company filed.
    fn facts(&self, ticker: String, query: FactsQuery) -> RunServiceFuture<'_, Value>;

    /// Checks a text against the facts a company filed.
    fn check(&self, request: CheckTextRequest) -> RunServiceFuture<'_, Value>;

    /// Finds companies whose ticker or name starts with `words`.
    fn tickers(&self, words: String) -> RunServiceFuture<'_, TickerList>;

    /// Lists the committees available to a consultation.
    fn committees(&self) -> Result<CommitteeList, ApiProblem>;

    /// Returns the program's settings. Keys are reported as present or missing, never shown.
    fn settings(&self) -> RunServiceFuture<'_, ServerSettings>;

    /// Tests the isolation of this machine's sandboxes by running them. This is slow, so calls in
    /// quick succession share one result.
    fn doctor(&self) -> RunServiceFuture<'_, DoctorResponse>;

    /// Typesets a memo as PDF.
    fn pdf(&self, memo: ReportDocument) -> RunServiceFuture<'_, Vec<u8>>;

    /// Pauses every run that is active in this process, waiting a limited time for model calls in
    /// progress.
    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
