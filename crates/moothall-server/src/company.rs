//! What there is to know before a run: companies, facts, checks, prices, settings.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use crate::asked::{Asked, Body, Named};
use crate::wire::{
    CheckText, CommitteeList, Doctor, FactsQuery, Settings, StartConsult, TickerList,
};
use crate::{App, Problem};

/// The longest words that are searched for.
const MAX_WORDS: usize = 80;

#[derive(Debug, Deserialize)]
pub(crate) struct TickerQuery {
    #[serde(default)]
    q: String,
}

pub(crate) async fn tickers(
    State(app): State<App>,
    Asked(query): Asked<TickerQuery>,
) -> Result<Json<TickerList>, Problem> {
    let words: String = query.q.trim().chars().take(MAX_WORDS).collect();
    app.desk.tickers(words).await.map(Json)
}

pub(crate) async fn facts(
    State(app): State<App>,
    Named(ticker): Named<String>,
    Asked(query): Asked<FactsQuery>,
) -> Result<Json<Value>, Problem> {
    app.desk.facts(ticker, query).await.map(Json)
}

pub(crate) async fn check(
    State(app): State<App>,
    Body(request): Body<CheckText>,
) -> Result<Json<Value>, Problem> {
    app.desk.check(request).await.map(Json)
}

pub(crate) async fn estimate(
    State(app): State<App>,
    Body(request): Body<StartConsult>,
) -> Result<Json<Value>, Problem> {
    app.desk.estimate(request).await.map(Json)
}

pub(crate) async fn committees(State(app): State<App>) -> Result<Json<CommitteeList>, Problem> {
    app.desk.committees().map(Json)
}

pub(crate) async fn settings(State(app): State<App>) -> Result<Json<Settings>, Problem> {
    app.desk.settings().await.map(Json)
}

pub(crate) async fn doctor(State(app): State<App>) -> Result<Json<Doctor>, Problem> {
    app.desk.doctor().await.map(Json)
}
