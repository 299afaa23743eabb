//! The caller of a request and the permission checks.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use moothall_core::access::{
    AccessCaller, AccessObject, AccessRefusal, AccessScope, RunOwner, TeamMember, decide,
};

use crate::ApiProblem;

/// The permission that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutePermission {
    /// No permission; the route is public.
    Nothing,
    /// The scope, on resources shared by all teams.
    Scope(AccessScope),
    /// The scope, on the run in the path.
    ScopeOnRun(AccessScope),
    /// The scope, on the token in the path.
    ScopeOnToken(AccessScope),
    /// The scope, on the server itself, which belongs to the team `local`.
    ScopeOnServer(AccessScope),
}

/// The caller of a request. Without the `identify` middleware it is `AccessCaller::Nobody`, so a router
/// that omits the middleware refuses everything.
#[derive(Debug, Clone)]
pub struct CallerIdentity(pub AccessCaller);

impl CallerIdentity {
    /// Checks that the caller has `scope` on shared resources.
    pub fn may(&self, scope: AccessScope) -> Result<(), ApiProblem> {
        decide(&self.0, scope, AccessObject::Common).map_err(ApiProblem::from)
    }

    /// Checks that the caller has `scope` on a resource of `owner`.
    pub fn may_with(&self, scope: AccessScope, owner: &RunOwner) -> Result<(), ApiProblem> {
        decide(&self.0, scope, AccessObject::Of(&owner.team)).map_err(ApiProblem::from)
    }
}

impl CallerIdentity {
    /// Returns the signed-in member.
    pub(crate) fn member(&self) -> Result<&TeamMember, ApiProblem> {
        match &self.0 {
            AccessCaller::Known(member) => Ok(member),
            AccessCaller::Nobody
            | AccessCaller::Unknown
            | AccessCaller::Expired
            | AccessCaller::Revoked => Err(AccessRefusal::SignInFirst.into()),
        }
    }

    /// Returns the owner for whom the caller acts.
    pub(crate) fn owner(&self) -> Result<RunOwner, ApiProblem> {
        Ok(self.member()?.owner.clone())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for CallerIdentity {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiProblem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self(AccessCaller::Nobody)))
    }
}

/// Middleware that rejects callers without the required permission.
pub(crate) async fn require(
    State(needs): State<RoutePermission>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request
        .extensions()
        .get::<CallerIdentity>()
        .cloned()
        .unwrap_or(CallerIdentity(AccessCaller::Nobody));
    let may = match needs {
        RoutePermission::Nothing => Ok(()),
        RoutePermission::Scope(scope)
        | RoutePermission::ScopeOnRun(scope)
        | RoutePermission::ScopeOnToken(scope) => caller.may(scope),
        RoutePermission::ScopeOnServer(scope) => caller.may_with(scope, &RunOwner::local()),
    };
    match may {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
