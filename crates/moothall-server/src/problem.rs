//! Errors as responses: `application/problem+json` (RFC 9457) with a machine-readable code and a
//! hint.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use moothall_core::ErrorCode;
use moothall_core::access::AccessRefusal;
use moothall_core::with_causes;
use moothall_store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;

/// Error response of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Problem"))]
#[schemars(rename = "Problem")]
pub struct ApiProblem {
    /// Always `about:blank`; `code` identifies the error.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Name of the HTTP status.
    title: &'static str,
    /// HTTP status code.
    pub status: u16,
    /// Machine-readable error code.
    pub code: ErrorCode,
    /// Error message.
    pub detail: String,
    /// How to fix the error, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
    /// Value of the `Retry-After` header, in seconds.
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl ApiProblem {
    /// Creates a problem with this status and code.
    pub fn new(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            hint: None,
            retry_after: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a `Retry-After` header.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// 400: the request is malformed.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::BadRequest, detail)
    }

    /// 404: unknown run.
    pub fn no_such_run(id: &str) -> Self {
        let shown: String = id.chars().filter(|c| !c.is_control()).take(40).collect();
        Self::new(StatusCode::NOT_FOUND, ErrorCode::RunNotFound, format!("run `{shown}` not found"))
            .with_hint("list the runs with `GET /api/runs`")
    }

    /// 404: unknown resource.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, detail)
    }

    /// 409: the request conflicts with the current state.
    pub fn conflict(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 500: internal error. The cause is logged, not returned.
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(target: "moothall::server", error = %with_causes(error), "request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, "internal server error")
            .with_hint("see the server log for the cause, or try again")
    }
}

impl From<StoreError> for ApiProblem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::UnknownRun(run_id) => Self::no_such_run(run_id.as_str()),
            StoreError::RunEnded { .. } => {
                Self::conflict(ErrorCode::RunOver, "the run has already ended")
            }
            StoreError::Busy(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy, "the run store is busy")
                    .with_hint("try again in a moment")
                    .retry_after(1)
            }
            _ => Self::internal(&error),
        }
    }
}

impl From<AccessRefusal> for ApiProblem {
    fn from(refusal: AccessRefusal) -> Self {
        let status = match refusal {
            AccessRefusal::SignInFirst
            | AccessRefusal::UnknownCredential
            | AccessRefusal::ExpiredCredential
            | AccessRefusal::RevokedCredential => StatusCode::UNAUTHORIZED,
            AccessRefusal::ScopeMissing(_) => StatusCode::FORBIDDEN,
            AccessRefusal::NotThere => StatusCode::NOT_FOUND,
        };
        Self::new(status, refusal.code(), refusal.to_string()).with_hint(refusal.hint())
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let retry_after = self.retry_after;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
