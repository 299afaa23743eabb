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
const MAX_WORDS: usize = 80;

#[derive(Debug, Deserialize)]
pub(crate) struct TickerQuery {
    #[serde(default)]
    q: String,
}

pub(crate) async fn tickers(
    State(app): State<AppState>,
    QueryParams(query): QueryParams<TickerQuery>,
) -> Result<Json<TickerList>, ApiProblem> {
    let words: String = query.q.trim().chars().take(MAX_WORDS).collect();
    app.desk.tickers(words).await.map(Json)
}

pub(crate) async fn facts(
    State(app): State<AppState>,
    PathParams(ticker): PathParams<String>,
    QueryParams(query): QueryParams<FactsQuery>,
) -> Result<Json<Value>, ApiProblem> {
    app.desk.facts(ticker, query).await.map(Json)
}

pub(crate) async fn check(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<CheckTextRequest>,
) -> Result<Json<Value>, ApiProblem> {
    app.desk.check(request).await.map(Json)
}

pub(crate) async fn estimate(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<StartConsultRequest>,
) -> Result<Json<Value>, ApiProblem> {
    app.desk.estimate(request).await.map(Json)
}

pub(crate) async fn committees(
    State(app): State<AppState>,
) -> Result<Json<CommitteeList>, ApiProblem> {
    app.desk.committees().map(Json)
}

pub(crate) async fn settings(
    State(app): State<AppState>,
) -> Result<Json<ServerSettings>, ApiProblem> {
    app.desk.settings().await.map(Json)
}

pub(crate) async fn doctor(
    State(app): State<AppState>,
) -> Result<Json<DoctorResponse>, ApiProblem> {
    app.desk.doctor().await.map(Json)
}
