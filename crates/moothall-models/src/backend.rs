//! Where answers come from.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use moothall_core::model::{ModelFailure, ModelRequest};

use crate::catalog::ModelCard;
use crate::ledger::Reservation;
use crate::wire::Answer;

/// One source of answers: a provider, the demonstration model, a script.
///
/// What implementors promise:
/// - One `answer` is one try: no retry inside, because the gateway counts and bills each.
/// - Dropping the future stops the work and frees what it holds.
/// - Everything in the answer is untrusted; the gateway judges it.
///
/// Boxed futures because the backend is chosen at run time from the model's name.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Answers a request, handing out pieces as they come where the caller listens.
    fn answer<'a>(&'a self, call: Call<'a>) -> AnswerFuture<'a>;
}

/// The future of one try.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Answered, FailedTry>> + Send + 'a>>;

/// One try.
pub struct Call<'a> {
    /// What is asked.
    pub request: &'a ModelRequest,
    /// What is known about the model.
    pub card: &'a ModelCard,
    /// Is told when the request leaves, because from then on it may be billed.
    pub reservation: &'a Reservation<'a>,
    /// Who listens while the answer is written.
    pub listener: Option<&'a mut (dyn Listener + 'a)>,
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("model", &self.request.model).finish_non_exhaustive()
    }
}

/// Hears an answer while it is written. What it hears is for live views only: it is never stored,
/// and may be taken back.
pub trait Listener: Send {
    /// More text.
    fn text(&mut self, piece: &str);

    /// The try broke off; everything since the last start is void.
    fn restart(&mut self);
}

/// An answer, and the window it had to fit.
#[derive(Debug)]
pub struct Answered {
    /// What was said.
    pub answer: Answer,
    /// The window in tokens, where the request set or knew it.
    pub window: Option<u64>,
}

/// A try without an answer.
#[derive(Debug)]
pub struct FailedTry {
    /// Why.
    pub failure: ModelFailure,
    /// Whether the provider may bill it.
    pub bill: Bill,
}

/// Whether a failed try may cost money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bill {
    /// The provider refused it or never saw it.
    None,
    /// The provider began to work on it; nobody knows what it bills.
    Possible,
}
