//! Why nothing was gathered, and what helps.

use moothall_core::consult::GatherFailureKind;
use moothall_core::evidence::{EvidenceError, Listing, Ticker};
use moothall_core::with_causes;

use super::GatherError;
use crate::edgar::EdgarError;

/// How like a symbol must be (0 to 1) to be suggested.
const LIKE_ENOUGH: f64 = 0.6;
const MOST_SUGGESTIONS: usize = 3;

pub(super) fn unreadable(error: EvidenceError) -> GatherError {
    let kind = match &error {
        EvidenceError::NoAnnualReport { .. } => GatherFailureKind::NoFacts,
        _ => GatherFailureKind::Unreadable,
    };
    GatherError::new(kind, with_causes(&error))
}

pub(super) fn other_filer(what: &str) -> GatherError {
    let detail = format!("the {what} is about another filer than the one that was asked for");
    GatherError::new(GatherFailureKind::Unreadable, detail)
}

pub(super) fn unavailable(what: &str, error: &EdgarError) -> GatherError {
    let kind = match error {
        EdgarError::NoContact => GatherFailureKind::NoContact,
        EdgarError::TooLarge => GatherFailureKind::Unreadable,
        _ => GatherFailureKind::Unavailable,
    };
    let hint = match error {
        EdgarError::NoContact => Some(
            "set `evidence.contact` to your mail address in moothall.toml, or MOOTHALL_EVIDENCE__CONTACT; or try HLXI, which needs nothing",
        ),
        EdgarError::Refused { .. } => Some(
            "the SEC refuses requests without a real contact (`evidence.contact`), and whoever asked too often until ten quiet minutes have passed",
        ),
        EdgarError::RateLimited => Some("ask again after ten quiet minutes"),
        _ => None,
    };
    let detail = match error {
        EdgarError::NoContact => error.to_string(),
        _ => format!("{what} cannot be had: {error}"),
    };
    let failed =
        GatherError { is_retryable: error.is_retryable(), ..GatherError::new(kind, detail) };
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

pub(super) fn ambiguous(ticker: &Ticker, several: &[Listing]) -> GatherError {
    let names: Vec<String> =
        several.iter().map(|one| format!("{} (CIK {})", one.title, one.cik)).collect();
    let detail = format!("several filers have the ticker {ticker}: {}", names.join(", "));
    GatherError::new(GatherFailureKind::AmbiguousTicker, detail)
        .with_hint("use another ticker of the company, such as the one of its common stock")
}

pub(super) fn unknown(ticker: &Ticker, known: &[Listing]) -> GatherError {
    let failed = GatherError::new(
        GatherFailureKind::UnknownTicker,
        format!("no company has the ticker {ticker}"),
    );
    let near = suggestions(ticker, known);
    if near.is_empty() {
        return failed.with_hint("tickers are those of companies that file with the SEC");
    }
    let words: Vec<String> =
        near.iter().map(|one| format!("{} ({})", one.ticker, one.title)).collect();
    failed.with_hint(format!("did you mean {}?", words.join(" or ")))
}

/// Companies whose name begins with what was typed; where there are none, symbols that are like it.
fn suggestions<'a>(ticker: &Ticker, known: &'a [Listing]) -> Vec<&'a Listing> {
    let typed = ticker.as_str();
    let by_name = |one: &Listing| {
        let first = one.title.split([' ', ',', '.']).next().unwrap_or_default();
        typed.len() > 2 && first.eq_ignore_ascii_case(typed)
    };
    let mut near: Vec<(bool, f64, &Listing)> = known
        .iter()
        .map(|one| {
            let likeness = strsim::normalized_damerau_levenshtein(one.ticker.as_str(), typed);
            (by_name(one), likeness, one)
        })
        .filter(|(named, likeness, _)| *named || *likeness >= LIKE_ENOUGH)
        .collect();
    near.sort_by(|(named, likeness, one), (other_named, other_likeness, other)| {
        other_named
            .cmp(named)
            .then(other_likeness.total_cmp(likeness))
            .then_with(|| one.ticker.cmp(&other.ticker))
    });
    near.dedup_by_key(|(_, _, one)| one.cik);
    if near.first().is_some_and(|(named, _, _)| *named) {
        near.retain(|(named, _, _)| *named);
    }
    near.into_iter().map(|(_, _, one)| one).take(MOST_SUGGESTIONS).collect()
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
