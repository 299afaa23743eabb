//! Endpoints that need no run: companies, facts, checks, estimates, settings.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use crate::dto::{
    CheckTextRequest, CommitteeList, DoctorResponse, FactsQuery, ServerSettings,
    StartConsultRequest, TickerList,
};
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::{ApiProblem, AppState};

/// Longer search terms are truncated to this many characters.
const MAX_QUERY_CHARS: usize = 80;

#[derive(Debug, Deserialize)]
pub(crate) struct TickerQuery {
    #[serde(default)]
    q: String,
}

pub(crate) async fn tickers(
    State(app): State<AppState>,
    QueryParams(query): QueryParams<TickerQuery>,
) -> Result<Json<TickerList>, ApiProblem> {
    let query_text: String = query.q.trim().chars().take(MAX_QUERY_CHARS).collect();
    app.run_service.tickers(query_text).await.map(Json)
}

pub(crate) async fn facts(
    State(app): State<AppState>,
    PathParams(ticker): PathParams<String>,
    QueryParams(query): QueryParams<FactsQuery>,
) -> Result<Json<Value>, ApiProblem> {
    app.run_service.facts(ticker, query).await.map(Json)
}

pub(crate) async fn check(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<CheckTextRequest>,
) -> Result<Json<Value>, ApiProblem> {
    app.run_service.check(request).await.map(Json)
}

pub(crate) async fn estimate(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<StartConsultRequest>,
) -> Result<Json<Value>, ApiProblem> {
    app.run_service.estimate(request).await.map(Json)
}

pub(crate) async fn committees(
    State(app): State<AppState>,
) -> Result<Json<CommitteeList>, ApiProblem> {
    app.run_service.committees().map(Json)
}

pub(crate) async fn settings(
    State(app): State<AppState>,
) -> Result<Json<ServerSettings>, ApiProblem> {
    app.run_service.settings().await.map(Json)
}

pub(crate) async fn doctor(
    State(app): State<AppState>,
) -> Result<Json<DoctorResponse>, ApiProblem> {
    app.run_service.doctor().await.map(Json)
}
