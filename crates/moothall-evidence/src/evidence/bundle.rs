//! The evidence gathered about a company before a run starts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::cik::Cik;
use super::documents::UserDocument;
use super::events::FilingEvent;
use super::fact::FilingSource;
use super::news::NewsHeadline;
use super::passages::FilingPassage;
use super::sheet::FactSheet;
use super::submissions::is_annual;
use super::tickers::Ticker;
use crate::Sha256Hex;

/// A periodic report older than this causes a warning: the next one is due or overdue.
const WARN_AFTER_DAYS: i32 = 100;

/// The company that the evidence is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanyProfile {
    /// The company's name.
    pub name: String,
    /// The requested ticker; `None` for an unlisted company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticker: Option<Ticker>,
    /// The filer's CIK; `None` if the evidence is not from filings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cik: Option<Cik>,
    /// Its industry as named by the SEC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub industry: Option<String>,
    /// The last day of its fiscal year as `09-26`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fiscal_year_end: Option<String>,
    /// Its former names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_names: Vec<String>,
    /// The company does not exist; it demonstrates the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fictional: bool,
}

/// The origin of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub enum Provenance {
    /// The SEC's own service.
    Filings,
    /// Recorded responses, or a server other than the SEC's.
    Recorded {
        /// Name of the recording.
        name: String,
    },
    /// Only the user's own documents.
    Documents {
        /// Name of their folder.
        name: String,
    },
    /// AI-generated. Every page that uses it says so.
    Synthetic,
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filings => f.write_str("SEC filings"),
            Self::Recorded { name } => write!(f, "the recording {name}"),
            Self::Documents { name } => write!(f, "your documents ({name})"),
            Self::Synthetic => f.write_str("AI-generated (not real filings)"),
        }
    }
}

/// A document that was read. It has no timestamp, so that equal runs have equal evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Its SEC URL, also for recordings; `recording:…` for a fictional company, `document:…` for a
    /// user's file, `news:…` for headlines.
    pub url: String,
    /// Hash of its bytes.
    pub sha256: Sha256Hex,
    /// Its size.
    pub bytes: u64,
}

/// Everything that agents may cite about a company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The company that the evidence is about.
    pub company: CompanyProfile,
    /// The origin of the evidence.
    pub provenance: Provenance,
    /// F0: the fact sheet.
    pub sheet: Option<FactSheet>,
    /// E0: filing events, newest first.
    pub events: Vec<FilingEvent>,
    /// T0: passages of the company's filings.
    pub passages: Vec<FilingPassage>,
    /// U0: the user's own documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<UserDocument>,
    /// N0: headlines, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<NewsHeadline>,
    /// What is missing, and why.
    pub missing: Vec<String>,
    /// The documents that the evidence was read from.
    pub sources: Vec<SourceFile>,
}

impl Evidence {
    /// The newest filing used by a number of the sheet.
    pub fn newest_filing(&self) -> Option<&FilingSource> {
        self.sheet.as_ref().and_then(newest_filing)
    }

    /// Warnings about the age of the evidence.
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

/// The newest filing used by a number of the sheet.
pub fn newest_filing(sheet: &FactSheet) -> Option<&FilingSource> {
    newest_of(sheet, |_| true)
}

/// The newest annual report used by a number of the sheet.
pub fn newest_annual(sheet: &FactSheet) -> Option<&FilingSource> {
    newest_of(sheet, |filed| is_annual(&filed.form))
}

/// Of the facts of one filing, prefers the latest period end; cover-page values are dated later and
/// have no start.
fn newest_of(sheet: &FactSheet, counts: impl Fn(&FilingSource) -> bool) -> Option<&FilingSource> {
    let filed = sheet.facts.values().filter_map(|fact| fact.filed());
    let order = |filed: &&FilingSource| {
        (filed.filed, filed.accession.clone(), filed.start.is_some(), filed.end)
    };
    filed.filter(|filed| counts(filed)).max_by_key(order)
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
