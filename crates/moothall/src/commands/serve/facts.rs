//! What a server is asked before there is a run.

use std::path::{Path, PathBuf};

use moothall_core::ErrorCode;
use moothall_core::IsolationChoice;
use moothall_core::consult::committee::Seat;
use moothall_core::consult::{Committee, EvidenceSource, GatherRequest, board};
use moothall_core::evidence::{Day, Evidence, Ticker, TickerTable};
use moothall_sandbox::image::ImageStore;
use moothall_server::wire::{
    CommitteeList, CommitteeRow, KeyRow, SeatRow, Settings, TickerList, TickerRow,
};

use super::telling::Causes;
use crate::commands::facts;
use crate::config::{EngineChoice, Loaded};
use crate::context::Context;
use crate::error::CliError;
use crate::filings::Filings;
use crate::isolation;
use crate::pace::Pace;

/// The most companies of one answer.
const MOST_TICKERS: usize = 12;

/// What a company filed.
pub(super) async fn evidence(
    loaded: &Loaded,
    offline: Option<&Path>,
    ticker: &str,
    as_of: Option<Day>,
    allow_stale: bool,
) -> Result<Evidence, CliError> {
    let ticker = Ticker::parse(ticker.trim()).map_err(|error| {
        CliError::usage(error.to_string())
            .with_hint("write it as it is listed, such as AAPL or BRK-B")
            .with_code(ErrorCode::UnknownTicker)
    })?;
    let request = GatherRequest {
        ticker: ticker.to_string(),
        source: EvidenceSource::Filings,
        as_of,
        allow_stale,
        name: None,
        documents: None,
        news: None,
    };
    // Boxed: a gathering under way is large.
    Box::pin(facts::gathered(loaded, &request, None, offline)).await
}

/// Companies whose symbol or name begins like this. Where the SEC cannot be asked, there is the one
/// that comes with the program.
pub(super) async fn tickers(
    loaded: &Loaded,
    offline: Option<&Path>,
    words: &str,
) -> Result<TickerList, CliError> {
    let mut found = matching(&Filings::bundled_tickers()?, words, true);
    let can_ask = offline.is_some() || loaded.resolved.config.evidence.contact.is_some();
    if !words.is_empty() && can_ask {
        let table = Filings::tickers(loaded, offline).await?;
        let others = matching(&table, words, false);
        let is_new = |row: &TickerRow| !found.iter().any(|one| one.ticker == row.ticker);
        let others: Vec<TickerRow> = others.into_iter().filter(is_new).collect();
        found.extend(others);
    }
    found.truncate(MOST_TICKERS);
    Ok(TickerList { tickers: found })
}

fn matching(table: &TickerTable, words: &str, fictional: bool) -> Vec<TickerRow> {
    let wanted = words.to_lowercase();
    let row = |listing: &moothall_core::evidence::Listing| TickerRow {
        ticker: listing.ticker.to_string(),
        name: listing.title.clone(),
        fictional,
    };
    let ticker = |one: &&moothall_core::evidence::Listing| {
        one.ticker.as_str().to_lowercase().starts_with(&wanted)
    };
    let name = |one: &&moothall_core::evidence::Listing| {
        one.title.to_lowercase().split_whitespace().any(|word| word.starts_with(&wanted))
            || one.title.to_lowercase().starts_with(&wanted)
    };
    let by_ticker = table.listings().filter(ticker);
    let by_name = table.listings().filter(|one| name(one) && !ticker(one));
    by_ticker.chain(by_name).take(MOST_TICKERS).map(row).collect()
}

/// The committees that a request may name.
pub(super) fn committees(others: &[(Committee, PathBuf)]) -> CommitteeList {
    let seat = |seat: &Seat| SeatRow { id: seat.id.clone(), name: seat.name.clone() };
    let row = |one: &Committee| CommitteeRow {
        rounds: one.rounds,
        moves: one.shares(None).iter().sum(),
        analysts: one.analysts.iter().map(seat).collect(),
        critic: seat(&one.critic),
        decision_makers: one.decision_makers.iter().map(seat).collect(),
        metrics: one.metrics.iter().map(|metric| metric.name.clone()).collect(),
        name: one.name.clone(),
    };
    let all = [board()].into_iter().chain(others.iter().map(|(one, _)| one.clone()));
    CommitteeList { committees: all.map(|one| row(&one)).collect() }
}

fn engine_name(engine: EngineChoice) -> String {
    IsolationChoice::from(engine).as_str().to_owned()
}

/// What the program has and has not.
pub(super) fn settings(
    context: &Context,
    usual_model: Option<&moothall_core::model::ModelName>,
    offline: bool,
    pace: Pace,
    causes: &Causes,
) -> Settings {
    let loaded = &context.loaded;
    let config = &loaded.resolved.config;
    let model = context.model(usual_model);
    let keys = context.catalog.providers().map(|provider| KeyRow {
        provider: provider.name.clone(),
        needed: provider.needs_key(),
        present: context.keys.get(&provider.name).is_some(),
        hint: context.keys.hint(&provider.name).map(|hint| causes.hint(hint)),
        default_model: provider.default_model.clone(),
    });
    let images = ImageStore::at(isolation::images(loaded)).list().unwrap_or_default();
    Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model: model.as_ref().ok().map(ToString::to_string),
        model_problem: model.err().map(|error| causes.words(&error)),
        keys: keys.collect(),
        contact: config.evidence.contact.is_some(),
        offline,
        pace_ms: u64::try_from(pace.answer().as_millis()).unwrap_or(u64::MAX),
        isolation: engine_name(config.isolation.engine),
        images: images.into_iter().map(|image| image.name).collect(),
        budget_micro_usd: context.budget().usd,
    }
}
