//! Data for pages that need no run: filings, tickers, committees, settings.

use std::path::{Path, PathBuf};

use moothall_core::ErrorCode;
use moothall_core::IsolationChoice;
use moothall_core::consult::committee::CommitteeMember;
use moothall_core::consult::{Committee, EvidenceSource, GatherRequest, board};
use moothall_core::evidence::{CalendarDay, Evidence, Ticker, TickerTable};
use moothall_sandbox::image::ImageStore;
use moothall_server::dto::{
    CommitteeList, CommitteeRow, KeyRow, MemberRow, NotifyTargetRow, ServerSettings, TickerList,
    TickerRow,
};

use super::error_mapping::ErrorDisclosure;
use crate::commands::facts;
use crate::config::{EngineChoice, LoadedConfig};
use crate::context::CommandContext;
use crate::demo_delay::DemoDelay;
use crate::error::CliError;
use crate::evidence_sources::EvidenceSources;
use crate::isolation;
use crate::notify::{self, TargetStatus};

const MAX_TICKERS: usize = 12;

/// Gathers the filings of a company.
pub(crate) async fn evidence(
    loaded: &LoadedConfig,
    offline: Option<&Path>,
    ticker: &str,
    as_of: Option<CalendarDay>,
    allow_stale: bool,
) -> Result<Evidence, CliError> {
    let ticker = Ticker::parse(ticker.trim()).map_err(|error| {
        CliError::usage(error.to_string())
            .with_hint("use the ticker as listed, such as AAPL or BRK-B")
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
    // Boxed because the future is large.
    Box::pin(facts::gather_evidence(loaded, &request, None, offline)).await
}

/// Companies whose ticker or name starts with `query`. Without a contact for the SEC or a
/// recording, only the built-in sample company is searched.
pub(crate) async fn tickers(
    loaded: &LoadedConfig,
    offline: Option<&Path>,
    query: &str,
) -> Result<TickerList, CliError> {
    let mut found = matching(&EvidenceSources::bundled_tickers()?, query, true);
    let can_ask = offline.is_some() || loaded.resolved.config.evidence.contact.is_some();
    if !query.is_empty() && can_ask {
        let table = EvidenceSources::tickers(loaded, offline).await?;
        let others = matching(&table, query, false);
        let is_new = |row: &TickerRow| !found.iter().any(|one| one.ticker == row.ticker);
        let others: Vec<TickerRow> = others.into_iter().filter(is_new).collect();
        found.extend(others);
    }
    found.truncate(MAX_TICKERS);
    Ok(TickerList { tickers: found })
}

fn matching(table: &TickerTable, query: &str, fictional: bool) -> Vec<TickerRow> {
    let prefix = query.to_lowercase();
    let row = |listing: &moothall_core::evidence::TickerListing| TickerRow {
        ticker: listing.ticker.to_string(),
        name: listing.title.clone(),
        fictional,
    };
    let ticker = |one: &&moothall_core::evidence::TickerListing| {
        one.ticker.as_str().to_lowercase().starts_with(&prefix)
    };
    let name = |one: &&moothall_core::evidence::TickerListing| {
        one.title.to_lowercase().split_whitespace().any(|word| word.starts_with(&prefix))
            || one.title.to_lowercase().starts_with(&prefix)
    };
    let by_ticker = table.listings().filter(ticker);
    let by_name = table.listings().filter(|one| name(one) && !ticker(one));
    by_ticker.chain(by_name).take(MAX_TICKERS).map(row).collect()
}

pub(crate) fn committees(others: &[(Committee, PathBuf)]) -> CommitteeList {
    let seat = |seat: &CommitteeMember| MemberRow { id: seat.id.clone(), name: seat.name.clone() };
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

fn target_row(target: TargetStatus) -> NotifyTargetRow {
    let TargetStatus { name, kind, events, waiting, last_at, last_error } = target;
    NotifyTargetRow {
        name,
        kind: kind.to_owned(),
        events: events.into_iter().map(str::to_owned).collect(),
        waiting: waiting as u64,
        last_at,
        last_error,
    }
}

/// Settings shown in the web UI.
pub(crate) fn settings(
    context: &CommandContext,
    default_model: Option<&moothall_core::model::ModelList>,
    offline: bool,
    delay: DemoDelay,
    disclosure: &ErrorDisclosure,
) -> ServerSettings {
    let loaded = &context.loaded;
    let config = &loaded.resolved.config;
    let model = context.model(default_model);
    let keys = context.catalog.providers().map(|provider| KeyRow {
        provider: provider.name.clone(),
        needed: provider.needs_key(),
        present: context.keys.get(&provider.name).is_some(),
        hint: context.keys.hint(&provider.name).map(|hint| disclosure.hint(hint)),
        default_model: provider.default_model.clone(),
    });
    let images = ImageStore::at(isolation::images(loaded)).list().unwrap_or_default();
    ServerSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model: model.as_ref().ok().map(ToString::to_string),
        model_problem: model.err().map(|error| disclosure.message(&error)),
        keys: keys.collect(),
        contact: config.evidence.contact.is_some(),
        offline,
        pace_ms: u64::try_from(delay.answer().as_millis()).unwrap_or(u64::MAX),
        isolation: engine_name(config.isolation.engine),
        images: images.into_iter().map(|image| image.name).collect(),
        budget_micro_usd: context.budget().usd,
        notify_targets: notify::status(loaded).into_iter().map(target_row).collect(),
    }
}
