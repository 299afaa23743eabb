//! What the server asks of the program behind it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::Pin;

use moothall_core::access::Owner;
use moothall_core::report::document::Document;
use moothall_core::{RunId, Sha256Hex};
use moothall_store::RunRow;
use serde_json::Value;

use crate::Problem;
use crate::wire::{
    ChangeMoves, CheckText, CommitteeList, Doctor, FactsQuery, ResumeRun, Settings, StartConsult,
    StartRun, TickerList,
};

/// The future of one request to a [`Desk`].
pub type DeskFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// A run that somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// What they want.
    pub request: StartRun,
    /// Whom it will belong to.
    pub owner: Owner,
    /// The request, where it may be made again.
    pub once: Option<Once>,
}

/// A request that may come more than once and counts once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// What the client calls it.
    pub key: String,
    /// The hash of what it asks for.
    pub request_sha256: Sha256Hex,
}

/// What came of an [`Order`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// This run began.
    Now(RunId),
    /// The same order came before, and began this run.
    Before(RunId),
}

/// The program behind the server: it has configuration, keys, models and sandboxes, and starts runs
/// the way its own commands do.
///
/// What implementors promise:
/// - Whoever calls is a stranger: nothing in a request names a file of this machine.
/// - A run that was started or resumed is driven when the future ends, and goes on after it.
/// - Every commit of a run that it drives is told to the [`crate::Feed`] it was given.
pub trait Desk: Debug + Send + Sync {
    /// Starts a run. Everything that can be refused is refused before it exists.
    fn start(&self, order: Order) -> DeskFuture<'_, Begun>;

    /// Lets a run go on that stands still.
    fn resume(&self, row: RunRow, request: ResumeRun) -> DeskFuture<'_, ()>;

    /// Asks whoever drives a run to end it, or ends it where nobody does.
    fn cancel(&self, row: RunRow) -> DeskFuture<'_, ()>;

    /// Which of these runs somebody drives at the moment, here or in another process.
    fn driven(&self, rows: Vec<RunRow>) -> DeskFuture<'_, BTreeSet<RunId>>;

    /// The moves of a consultation as they would be debated, after a change where there is one, and
    /// who makes it.
    fn moves(&self, row: RunRow, change: Option<(ChangeMoves, String)>) -> DeskFuture<'_, Value>;

    /// What a consultation would take.
    fn estimate(&self, request: StartConsult) -> DeskFuture<'_, Value>;

    /// What a company filed.
    fn facts(&self, ticker: String, query: FactsQuery) -> DeskFuture<'_, Value>;

    /// A text against what a company filed.
    fn check(&self, request: CheckText) -> DeskFuture<'_, Value>;

    /// Companies whose ticker or name begins like this.
    fn tickers(&self, words: String) -> DeskFuture<'_, TickerList>;

    /// Committees that a consultation may name.
    fn committees(&self) -> Result<CommitteeList, Problem>;

    /// What the program has and has not. Keys are said to be there, never shown.
    fn settings(&self) -> DeskFuture<'_, Settings>;

    /// What the sandboxes of this machine are worth, found out by running them. That takes a while:
    /// whoever asks soon after somebody else is told the same.
    fn doctor(&self) -> DeskFuture<'_, Doctor>;

    /// A memo on pages.
    fn pdf(&self, memo: Document) -> DeskFuture<'_, Vec<u8>>;

    /// Lets every run that is driven here stand still; answers under way are waited for as long as
    /// is decent.
    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
