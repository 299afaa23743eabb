//! Extractors that turn a malformed request into an [`ApiProblem`].

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use moothall_core::{ErrorCode, causes};
use serde::de::DeserializeOwned;

use crate::ApiProblem;

/// Path parameters.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiProblem> {
        let named = Path::<T>::from_request_parts(parts, state).await;
        let Path(value) = named.map_err(|rejection: PathRejection| {
            ApiProblem::new(rejection.status(), ErrorCode::BadAddress, rejection.body_text())
        })?;
        Ok(Self(value))
    }
}

/// Query parameters.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiProblem> {
        let asked = Query::<T>::from_request_parts(parts, state).await;
        let Query(value) = asked.map_err(|rejection: QueryRejection| {
            ApiProblem::new(rejection.status(), ErrorCode::BadQuery, rejection.body_text())
        })?;
        Ok(Self(value))
    }
}

/// A JSON request body.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiProblem> {
        let Json(value) = Json::<T>::from_request(request, state).await.map_err(unreadable)?;
        Ok(Self(value))
    }
}

/// A JSON request body that may be missing.
#[derive(Debug)]
pub(crate) struct OptionalJsonBody<T>(pub(crate) Option<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiProblem> {
        // An empty body needs no `Content-Type`. A non-empty one must be JSON, which an HTML form
        // cannot send.
        let length = request.headers().get(header::CONTENT_LENGTH);
        let is_empty = length.is_none_or(|length| length == "0")
            && !request.headers().contains_key(header::TRANSFER_ENCODING);
        match is_empty {
            true => Ok(Self(None)),
            false => JsonBody::from_request(request, state)
                .await
                .map(|JsonBody(value)| Self(Some(value))),
        }
    }
}

/// Every request body refuses unknown fields, so a misspelled option is never ignored.
fn unreadable(rejection: JsonRejection) -> ApiProblem {
    if let Some(problem) = unknown_field(&rejection) {
        return problem;
    }
    let status = rejection.status();
    let code = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::NotJson,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::TooLarge,
        StatusCode::UNPROCESSABLE_ENTITY => ErrorCode::BadBody,
        _ => ErrorCode::BadRequest,
    };
    let hint = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some("send `Content-Type: application/json`"),
        StatusCode::PAYLOAD_TOO_LARGE => Some("send a shorter text, or fewer or smaller files"),
        _ => None,
    };
    let problem = ApiProblem::new(status, code, rejection.body_text());
    match hint {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}

/// The problem of a body with an unknown field, from serde's message: "unknown field `a`, expected
/// one of `b`, `c`".
fn unknown_field(rejection: &JsonRejection) -> Option<ApiProblem> {
    let innermost = causes(rejection).last()?.to_string();
    let (path, rest) = innermost.split_once("unknown field `")?;
    // The name comes from the client and may contain anything, so the last match ends it.
    let (name, expected) = rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, "))?;
    // The message may follow the path of the field, as in `documents[0].odd: `, but nothing else.
    if !path.is_empty() && !path.ends_with(&format!("{name}: ")) {
        return None;
    }
    let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
    let expected = expected.split(" at line ").next().unwrap_or_default();
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let hint = match known.is_empty() {
        true => "remove it; the object has no fields".to_owned(),
        false => format!("known fields: {}", known.join(", ")),
    };
    let detail = format!("unknown field `{name}`");
    let problem = ApiProblem::new(StatusCode::BAD_REQUEST, ErrorCode::UnknownField, detail);
    Some(problem.with_hint(hint))
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
