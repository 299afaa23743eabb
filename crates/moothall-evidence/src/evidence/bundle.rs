//! What is gathered about a company before anyone speaks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::cik::Cik;
use super::documents::UserDocument;
use super::events::FilingEvent;
use super::fact::Filed;
use super::news::Headline;
use super::passages::Passage;
use super::sheet::Sheet;
use super::submissions::is_annual;
use super::tickers::Ticker;
use crate::Sha256Hex;

/// A periodic report older than this is worth a warning: the next one is due or overdue.
const WARN_AFTER_DAYS: i32 = 100;

/// Who it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Company {
    /// Its name.
    pub name: String,
    /// The symbol it was asked for by; a company that is not listed has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticker: Option<Ticker>,
    /// The number of the filer; what is not from filings has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cik: Option<Cik>,
    /// Its industry in the words of the SEC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub industry: Option<String>,
    /// The last day of its fiscal year as `09-26`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fiscal_year_end: Option<String>,
    /// What it was called before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_names: Vec<String>,
    /// Nobody trades it: it exists to show how this program works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fictional: bool,
}

/// Where the evidence is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub enum Provenance {
    /// The SEC's own service.
    Filings,
    /// Answers that were recorded before, or come from another server than the SEC's.
    Recorded {
        /// What the recording is called.
        name: String,
    },
    /// The user's own documents and nothing else.
    Documents {
        /// What their folder is called.
        name: String,
    },
    /// A model made it up. Every page that uses it says so.
    Synthetic,
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filings => f.write_str("SEC filings"),
            Self::Recorded { name } => write!(f, "the recording {name}"),
            Self::Documents { name } => write!(f, "your documents ({name})"),
            Self::Synthetic => f.write_str("invented by a model"),
        }
    }
}

/// A document that was read. No time is kept: equal runs have equal evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Its address at the SEC, also where it was recorded; `recording:…` of a company that does not
    /// exist, `document:…` of a user's file, `news:…` of headlines.
    pub url: String,
    /// The hash of its bytes.
    pub sha256: Sha256Hex,
    /// How many there are.
    pub bytes: u64,
}

/// Everything that agents may cite about a company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Who it is about.
    pub company: Company,
    /// Where it is from.
    pub provenance: Provenance,
    /// F0: the numbers.
    pub sheet: Option<Sheet>,
    /// E0: what happened, newest first.
    pub events: Vec<FilingEvent>,
    /// T0: what the company says about itself.
    pub passages: Vec<Passage>,
    /// U0: the user's own documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<UserDocument>,
    /// N0: headlines, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<Headline>,
    /// What should be here and is not, and why.
    pub missing: Vec<String>,
    /// The documents behind all of it.
    pub sources: Vec<SourceFile>,
}

impl Evidence {
    /// The newest filing that a number of the sheet is from.
    pub fn newest_filing(&self) -> Option<&Filed> {
        self.sheet.as_ref().and_then(newest_filing)
    }

    /// What a reader should know about the age of the evidence.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let (Some(sheet), Some(newest)) = (&self.sheet, self.newest_filing()) else {
            return warnings;
        };
        let age = sheet.as_of.days_since(newest.filed);
        if age > WARN_AFTER_DAYS {
            warnings.push(format!(
                "the newest report used is {age} days old: {} of {}",
                newest.form, newest.filed
            ));
        }
        let results = self.events.iter().filter(|event| event.is_results());
        if let Some(event) = results.max_by_key(|event| event.filed)
            && event.filed > newest.filed
        {
            warnings.push(format!(
                "an {} of {} announces results that are not in these facts",
                event.form, event.filed
            ));
        }
        warnings
    }
}

/// The newest filing that a number of a sheet is from.
pub fn newest_filing(sheet: &Sheet) -> Option<&Filed> {
    newest_of(sheet, |_| true)
}

/// The newest annual report that a number of a sheet is from.
pub fn newest_annual(sheet: &Sheet) -> Option<&Filed> {
    newest_of(sheet, |filed| is_annual(&filed.form))
}

/// Of the facts of one filing the one with the last day of a period; covers are dated later.
fn newest_of(sheet: &Sheet, counts: impl Fn(&Filed) -> bool) -> Option<&Filed> {
    let filed = sheet.facts.values().filter_map(|fact| fact.filed());
    let order =
        |filed: &&Filed| (filed.filed, filed.accession.clone(), filed.start.is_some(), filed.end);
    filed.filter(|filed| counts(filed)).max_by_key(order)
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
