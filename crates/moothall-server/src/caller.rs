//! Who calls, and what they may do: the one place where that is decided.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use moothall_core::access::{
    Caller, Limits, Member, Object, Owner, Refusal, Scope, Scopes, decide,
};

use crate::Problem;

/// Whoever sent a request. Without the layer below, nobody: a router that forgets it refuses
/// everything.
#[derive(Debug, Clone)]
pub struct Who(pub Caller);

impl Who {
    /// Whether they may do this to what belongs to nobody.
    pub fn may(&self, scope: Scope) -> Result<(), Problem> {
        decide(&self.0, scope, Object::Common).map_err(Problem::from)
    }

    /// Whether they may do this to something of `owner`.
    pub fn may_with(&self, scope: Scope, owner: &Owner) -> Result<(), Problem> {
        decide(&self.0, scope, Object::Of(&owner.team)).map_err(Problem::from)
    }
}

impl Who {
    /// Whom they act for.
    pub(crate) fn owner(&self) -> Result<Owner, Problem> {
        match &self.0 {
            Caller::Known(member) => Ok(member.owner.clone()),
            Caller::Nobody | Caller::Unknown | Caller::Expired | Caller::Revoked => {
                Err(Refusal::SignInFirst.into())
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self(Caller::Nobody)))
    }
}

/// Whoever reaches a server that only listens to its own machine, and passed its guard, is its user.
pub(crate) async fn local_user(mut request: Request, next: Next) -> Response {
    let member = Member {
        owner: Owner::local(),
        scopes: Scopes::only(Scope::Admin),
        limits: Limits::default(),
    };
    request.extensions_mut().insert(Who(Caller::Known(member)));
    next.run(request).await
}

/// Lets only those through who may do this.
pub(crate) async fn require(State(scope): State<Scope>, request: Request, next: Next) -> Response {
    let who = request.extensions().get::<Who>().cloned().unwrap_or(Who(Caller::Nobody));
    match who.may(scope) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
