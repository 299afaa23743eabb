//! Errors as answers: `application/problem+json` (RFC 9457) with a code for programs and a hint for
//! people.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use moothall_core::ErrorCode;
use moothall_core::access::Refusal;
use moothall_core::with_causes;
use moothall_store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;

/// Why a request is not answered as it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Problem {
    /// Always `about:blank`: `code` says what it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// What it is, for programs.
    pub code: ErrorCode,
    /// What is wrong, for a person.
    pub detail: String,
    /// The cure, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
    /// Seconds after which it may be tried again.
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    /// A problem of this status and code.
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

    /// With the cure.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the time after which it may be tried again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The request cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::BadRequest, detail)
    }

    /// There is no such run.
    pub fn no_such_run(words: &str) -> Self {
        let shown: String = words.chars().filter(|c| !c.is_control()).take(40).collect();
        Self::new(
            StatusCode::NOT_FOUND,
            ErrorCode::RunNotFound,
            format!("there is no run `{shown}`"),
        )
        .with_hint("`GET /api/runs` lists them")
    }

    /// There is no such thing of a run.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, detail)
    }

    /// It does not fit where the run stands.
    pub fn conflict(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// Something broke here. What it was is in the log, not in the answer.
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(target: "moothall::server", error = %with_causes(error), "a request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Internal,
            "something broke on the way",
        )
        .with_hint("the server's log says what; trying again may help")
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::UnknownRun(run_id) => Self::no_such_run(run_id.as_str()),
            StoreError::RunEnded { .. } => {
                Self::conflict(ErrorCode::RunOver, "the run is over already")
            }
            StoreError::Busy(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorCode::Busy,
                "the runs cannot be read at the moment",
            )
            .retry_after(1),
            _ => Self::internal(&error),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::SignInFirst
            | Refusal::UnknownCredential
            | Refusal::ExpiredCredential
            | Refusal::RevokedCredential => StatusCode::UNAUTHORIZED,
            Refusal::ScopeMissing(_) => StatusCode::FORBIDDEN,
            Refusal::NotThere => StatusCode::NOT_FOUND,
        };
        Self::new(status, refusal.code(), refusal.to_string()).with_hint(refusal.hint())
    }
}

impl IntoResponse for Problem {
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
