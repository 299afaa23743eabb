//! Who calls, and what they may do: the one place where that is decided.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use moothall_core::access::{Caller, Member, Object, Owner, Refusal, Scope, decide};

use crate::Problem;

/// What a caller must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: anybody may know.
    Nothing,
    /// This, to what is common.
    Scope(Scope),
    /// This, to the run that the address names.
    ScopeOnRun(Scope),
    /// This, to the token that the address names.
    ScopeOnToken(Scope),
    /// This, to the server itself, which belongs to the team `local`.
    ScopeOnServer(Scope),
}

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
    /// Who they are.
    pub(crate) fn member(&self) -> Result<&Member, Problem> {
        match &self.0 {
            Caller::Known(member) => Ok(member),
            Caller::Nobody | Caller::Unknown | Caller::Expired | Caller::Revoked => {
                Err(Refusal::SignInFirst.into())
            }
        }
    }

    /// Whom they act for.
    pub(crate) fn owner(&self) -> Result<Owner, Problem> {
        Ok(self.member()?.owner.clone())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self(Caller::Nobody)))
    }
}

/// Lets only those through who may do this.
pub(crate) async fn require(State(needs): State<Needs>, request: Request, next: Next) -> Response {
    let who = request.extensions().get::<Who>().cloned().unwrap_or(Who(Caller::Nobody));
    let may = match needs {
        Needs::Nothing => Ok(()),
        Needs::Scope(scope) | Needs::ScopeOnRun(scope) | Needs::ScopeOnToken(scope) => {
            who.may(scope)
        }
        Needs::ScopeOnServer(scope) => who.may_with(scope, &Owner::local()),
    };
    match may {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
