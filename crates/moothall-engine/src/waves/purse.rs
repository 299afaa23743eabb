//! The budget of a run whose calls go out from several machines.

use std::fmt::Debug;
use std::pin::Pin;

use moothall_core::model::ModelFailure;
use moothall_core::money::{MicroUsd, Spent};
use moothall_models::Budget;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// The one owner of a run's budget, wherever it lives.
///
/// What implementors promise: as long as providers keep to the limits of requests, what was settled
/// and what is reserved never exceed the budget together.
pub trait Purse: Debug + Send + Sync {
    /// Room for the calls of a wave; waits while only reservations of others are in the way.
    ///
    /// A second reservation of the same wave by another worker means that the first one died: what it
    /// reserved counts as spent, because its calls may be billed.
    fn reserve(&self, wish: Reserve) -> PurseFuture<'_, Result<(), ModelFailure>>;

    /// What a wave has used in the end. Returns what the whole run has used, with everything under
    /// way counted in full.
    fn settle<'a>(&'a self, wave: &'a str, used: Spent) -> PurseFuture<'a, Spent>;

    /// Counts what a dead worker had reserved for this wave as spent; it is fine if there was none.
    /// For a wave that reserves nothing itself, because all its answers are there.
    fn forfeit<'a>(&'a self, wave: &'a str) -> PurseFuture<'a, Spent>;

    /// What the whole run has used, with everything under way counted in full.
    fn spent(&self) -> PurseFuture<'_, Spent>;
}

/// The future of a question to a [`Purse`].
pub type PurseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'a>>;

/// A wish for room in the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// The wave: the first of its effects.
    pub wave: String,
    /// The most that the calls can cost.
    pub usd: MicroUsd,
    /// The most that they can use.
    pub tokens: u64,
    /// The budget of the run.
    pub budget: Budget,
}
