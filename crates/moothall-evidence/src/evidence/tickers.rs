//! Maps ticker symbols to filers.
//!
//! The table is the SEC's `company_tickers.json`, or its variant with exchanges. A symbol that two
//! filers share is rejected rather than guessed, because symbols get reassigned.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use super::cik::Cik;
use super::error::{EvidenceError, check_size};
use super::sanitize::cleaned;

const DOCUMENT_KIND: &str = "list of tickers";
/// The real file has 0.8 MB and 9,905 rows.
const MAX_BYTES: usize = 16 << 20;
const MAX_ROWS: usize = 100_000;
const MAX_TICKER_BYTES: usize = 10;
const MAX_TITLE_CHARS: usize = 150;

/// A ticker symbol: one to ten capital letters, digits, dots and dashes, starting with a letter or
/// digit, so it is safe in paths and URLs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Ticker(String);

/// A text that is not a ticker symbol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a ticker: expected one to ten letters, digits, dots and dashes")]
pub struct InvalidTicker(String);

impl Ticker {
    /// Parses a symbol, ignoring case and surrounding spaces.
    pub fn parse(text: &str) -> Result<Self, InvalidTicker> {
        let upper = text.trim().to_ascii_uppercase();
        let inner = |byte: u8| {
            byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
        };
        let sound = (1..=MAX_TICKER_BYTES).contains(&upper.len())
            && upper.bytes().all(inner)
            && upper.starts_with(|first: char| first.is_ascii_alphanumeric());
        if sound { Ok(Self(upper)) } else { Err(InvalidTicker(cleaned(text, 40))) }
    }

    /// Parses a symbol in its canonical spelling only.
    pub fn parse_written(text: &str) -> Result<Self, InvalidTicker> {
        match Self::parse(text) {
            Ok(ticker) if ticker.0 != text => Err(InvalidTicker(cleaned(text, 40))),
            parsed => parsed,
        }
    }

    /// The symbol in capitals.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Lookup key shared by both spellings: the SEC writes `BRK-B`, most others `BRK.B`.
    fn key(&self) -> String {
        self.0.replace('.', "-")
    }
}

impl fmt::Display for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Ticker {
    type Err = InvalidTicker;

    fn from_str(text: &str) -> Result<Self, InvalidTicker> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for Ticker {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_written(&text).map_err(de::Error::custom)
    }
}

/// A filer with one of its ticker symbols.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TickerListing {
    /// The symbol as written in the table.
    pub ticker: Ticker,
    /// The filer's CIK.
    pub cik: Cik,
    /// The filer's name.
    pub title: String,
}

/// Filers by ticker symbol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickerTable {
    by_key: BTreeMap<String, Vec<TickerListing>>,
}

/// Why a symbol could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TickerLookupError {
    /// No filer has it.
    Unknown,
    /// Several filers have it.
    Ambiguous(Vec<TickerListing>),
}

impl TickerTable {
    /// Parses `company_tickers.json` (an object of rows) or `company_tickers_exchange.json` (field
    /// names and a list of rows). Unreadable rows are skipped; a document without any readable row
    /// is an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvidenceError> {
        check_size(MAX_BYTES, DOCUMENT_KIND, bytes)?;
        let json = |source| EvidenceError::Json { what: DOCUMENT_KIND, source };
        let document: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes).map_err(json)?;
        let listings = match (document.get("fields"), document.get("data")) {
            (Some(fields), Some(data)) => columns(fields, data).map_err(json)?,
            _ => document.values().take(MAX_ROWS).filter_map(|row| row_of(row)).collect(),
        };
        if listings.is_empty() {
            let reason = "no readable row".to_owned();
            return Err(EvidenceError::Invalid { what: DOCUMENT_KIND, reason });
        }
        let mut by_key = BTreeMap::<String, Vec<TickerListing>>::new();
        for listing in listings {
            let same = by_key.entry(listing.ticker.key()).or_default();
            if !same.iter().any(|other| other.cik == listing.cik) {
                same.push(listing);
            }
        }
        // Make the result independent of the order in the document.
        by_key.values_mut().for_each(|same| same.sort_unstable());
        Ok(Self { by_key })
    }

    /// The filer with this symbol, if exactly one has it.
    pub fn find(&self, ticker: &Ticker) -> Result<&TickerListing, TickerLookupError> {
        match self.by_key.get(&ticker.key()).map(Vec::as_slice) {
            None | Some([]) => Err(TickerLookupError::Unknown),
            Some([only]) => Ok(only),
            Some(several) => Err(TickerLookupError::Ambiguous(several.to_vec())),
        }
    }

    /// All listings, sorted by symbol.
    pub fn listings(&self) -> impl Iterator<Item = &TickerListing> {
        self.by_key.values().flatten()
    }
}

fn row_of(raw: &RawValue) -> Option<TickerListing> {
    #[derive(Deserialize)]
    struct TickerRowJson {
        cik_str: Cik,
        ticker: String,
        #[serde(default)]
        title: String,
    }
    let row: TickerRowJson = serde_json::from_str(raw.get()).ok()?;
    listing(row.cik_str, &row.ticker, &row.title)
}

fn columns(fields: &RawValue, data: &RawValue) -> Result<Vec<TickerListing>, serde_json::Error> {
    let names: Vec<String> = serde_json::from_str(fields.get())?;
    let rows: Vec<&RawValue> = serde_json::from_str(data.get())?;
    let at = |name: &str| names.iter().position(|field| field == name);
    let (Some(cik), Some(name), Some(ticker)) = (at("cik"), at("name"), at("ticker")) else {
        return Ok(Vec::new());
    };
    let read = |raw: &&RawValue| {
        let cells: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        let text = |at: usize| serde_json::from_str::<String>(cells.get(at)?.get()).ok();
        let cik = serde_json::from_str(cells.get(cik)?.get()).ok()?;
        listing(cik, &text(ticker)?, &text(name).unwrap_or_default())
    };
    Ok(rows.iter().take(MAX_ROWS).filter_map(read).collect())
}

fn listing(cik: Cik, ticker: &str, title: &str) -> Option<TickerListing> {
    Some(TickerListing {
        ticker: Ticker::parse(ticker).ok()?,
        cik,
        title: cleaned(title, MAX_TITLE_CHARS),
    })
}

#[cfg(test)]
#[path = "tickers_tests.rs"]
mod tests;
