//! Errors of the gatherer and their hints.

use moothall_core::consult::GatherFailureKind;
use moothall_core::evidence::{EvidenceError, Ticker, TickerListing};
use moothall_core::with_causes;

use super::GatherError;
use crate::edgar::EdgarError;

/// Minimum similarity (0 to 1) of a suggested ticker.
const MIN_SIMILARITY: f64 = 0.6;
const MAX_SUGGESTIONS: usize = 3;

/// For documents that cannot be used as the server sent them.
const SOURCE_HINT: &str = "try again later; if you set `evidence.data_url`, check that server";

pub(crate) fn unreadable(error: EvidenceError) -> GatherError {
    let (kind, hint) = match &error {
        EvidenceError::NoAnnualReport { .. } => {
            (GatherFailureKind::NoFacts, "choose a later day with `--as-of`, or another company")
        }
        _ => (GatherFailureKind::Unreadable, SOURCE_HINT),
    };
    GatherError::new(kind, with_causes(&error)).with_hint(hint)
}

pub(crate) fn other_filer(what: &str) -> GatherError {
    let detail = format!("the {what} belongs to another company than the one requested");
    GatherError::new(GatherFailureKind::Unreadable, detail).with_hint(SOURCE_HINT)
}

pub(crate) fn unavailable(what: &str, error: &EdgarError) -> GatherError {
    let kind = match error {
        EdgarError::NoContact => GatherFailureKind::NoContact,
        EdgarError::TooLarge => GatherFailureKind::Unreadable,
        _ => GatherFailureKind::Unavailable,
    };
    let hint = match error {
        EdgarError::NoContact => Some(
            "set `evidence.contact` to your email address in moothall.toml, or set MOOTHALL_EVIDENCE__CONTACT; HLXI works without a contact",
        ),
        EdgarError::Refused { .. } => Some(
            "set `evidence.contact` to a real email address; after too many requests, wait ten minutes without sending any",
        ),
        EdgarError::RateLimited => {
            Some("wait ten minutes without sending requests, then try again")
        }
        EdgarError::TooLarge => Some(
            "check `evidence.data_url` and `evidence.www_url`; the size limit cannot be changed",
        ),
        EdgarError::Status { .. } | EdgarError::Transport(_) | EdgarError::TimedOut(_) => {
            Some("check your network connection, or try again later")
        }
        EdgarError::NotFound => None,
    };
    let detail = match error {
        EdgarError::NoContact => error.to_string(),
        _ => format!("cannot fetch {what}: {error}"),
    };
    let failed =
        GatherError { is_retryable: error.is_retryable(), ..GatherError::new(kind, detail) };
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

pub(crate) fn ambiguous(ticker: &Ticker, several: &[TickerListing]) -> GatherError {
    let names: Vec<String> =
        several.iter().map(|one| format!("{} (CIK {})", one.title, one.cik)).collect();
    let detail = format!("several filers have the ticker {ticker}: {}", names.join(", "));
    GatherError::new(GatherFailureKind::AmbiguousTicker, detail)
        .with_hint("use another ticker of the company, such as that of its common stock")
}

pub(crate) fn unknown(ticker: &Ticker, listings: &[TickerListing]) -> GatherError {
    let failed = GatherError::new(
        GatherFailureKind::UnknownTicker,
        format!("no company has the ticker {ticker}"),
    );
    let near = suggestions(ticker, listings);
    if near.is_empty() {
        return failed.with_hint("only tickers of companies that file with the SEC are known");
    }
    let candidates: Vec<String> =
        near.iter().map(|one| format!("{} ({})", one.ticker, one.title)).collect();
    failed.with_hint(format!("did you mean {}?", candidates.join(" or ")))
}

/// Companies whose name starts with the typed word; if there are none, similar tickers.
fn suggestions<'a>(ticker: &Ticker, listings: &'a [TickerListing]) -> Vec<&'a TickerListing> {
    let input = ticker.as_str();
    let by_name = |one: &TickerListing| {
        let first = one.title.split([' ', ',', '.']).next().unwrap_or_default();
        input.len() > 2 && first.eq_ignore_ascii_case(input)
    };
    let mut near: Vec<(bool, f64, &TickerListing)> = listings
        .iter()
        .map(|one| {
            let similarity = strsim::normalized_damerau_levenshtein(one.ticker.as_str(), input);
            (by_name(one), similarity, one)
        })
        .filter(|(named, similarity, _)| *named || *similarity >= MIN_SIMILARITY)
        .collect();
    near.sort_by(|(named, similarity, one), (other_named, other_similarity, other)| {
        other_named
            .cmp(named)
            .then(other_similarity.total_cmp(similarity))
            .then_with(|| one.ticker.cmp(&other.ticker))
    });
    near.dedup_by_key(|(_, _, one)| one.cik);
    if near.first().is_some_and(|(named, _, _)| *named) {
        near.retain(|(named, _, _)| *named);
    }
    near.into_iter().map(|(_, _, one)| one).take(MAX_SUGGESTIONS).collect()
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
