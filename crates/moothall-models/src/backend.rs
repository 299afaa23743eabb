//! The interface to sources of model replies.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use moothall_core::model::{ModelFailure, ModelRequest};

use crate::catalog::ModelCard;
use crate::ledger::BudgetReservation;
use crate::wire::RawReply;

/// A source of replies: a provider, the demo model or a script.
///
/// Implementations guarantee:
/// - One `answer` is one attempt, without retries, because the gateway counts and bills each
///   attempt.
/// - Dropping the future stops the work and frees its resources.
///
/// Replies are untrusted; the gateway checks them. Futures are boxed because the backend is chosen
/// at run time from the model's name.
pub trait ModelBackend: fmt::Debug + Send + Sync {
    /// Answers a request and passes partial text to the listener, if there is one.
    fn answer<'a>(&'a self, call: ModelAttempt<'a>) -> AnswerFuture<'a>;
}

pub type AnswerFuture<'a> =
    Pin<Box<dyn Future<Output = Result<BackendReply, FailedAttempt>> + Send + 'a>>;

/// One attempt of a model call.
pub struct ModelAttempt<'a> {
    pub request: &'a ModelRequest,
    /// The catalog entry of the model.
    pub card: &'a ModelCard,
    /// Must be marked when the request is sent, because it may be billed from then on.
    pub reservation: &'a BudgetReservation<'a>,
    /// Receives partial text.
    pub listener: Option<&'a mut (dyn ReplyListener + 'a)>,
}

impl fmt::Debug for ModelAttempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelAttempt").field("model", &self.request.model).finish_non_exhaustive()
    }
}

/// Receives a reply while it is generated, for live views only. Partial text is never stored and
/// may be discarded.
pub trait ReplyListener: Send {
    fn text(&mut self, piece: &str);

    /// The attempt failed; discard all text since its start.
    fn restart(&mut self);
}

/// A reply and the context window that applied to it.
#[derive(Debug)]
pub struct BackendReply {
    pub answer: RawReply,
    /// The context window in tokens, if the request set it or it is known.
    pub window: Option<u64>,
}

/// An attempt without a reply.
#[derive(Debug)]
pub struct FailedAttempt {
    pub failure: ModelFailure,
    pub bill: BillingRisk,
}

/// Whether a failed attempt may cost money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillingRisk {
    /// The provider rejected or never received the request.
    None,
    /// The provider started to process the request; the cost is unknown.
    Possible,
}
