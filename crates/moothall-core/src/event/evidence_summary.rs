//! A summary of the evidence for events; the evidence itself is the effect's result.

use serde::{Deserialize, Serialize};

use crate::evidence::{CalendarDay, Evidence, Provenance};
use crate::text::one_line;

/// Limits for the notes in an event.
const MAX_NOTES: usize = 8;
const MAX_NOTE_CHARS: usize = 240;

/// The company of a consultation and the amount of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EvidenceSummary {
    /// The company's name.
    pub company: String,
    /// Whether the company is fictional, for demos.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fictional: bool,
    /// Where the evidence is from.
    pub provenance: Provenance,
    /// The date up to which the data is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<CalendarDay>,
    /// The newest filing that a number is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_filing: Option<NewestFiling>,
    /// The number of facts.
    pub facts: u32,
    /// The number of 8-K events.
    pub events: u32,
    /// The number of passages from filings.
    pub passages: u32,
    /// The number of documents supplied by the user.
    pub documents: u32,
    /// The number of headlines.
    pub headlines: u32,
    /// The number of source files.
    pub sources: u32,
    /// Notes on missing evidence and on its age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A filing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewestFiling {
    /// `10-K`.
    pub form: String,
    /// The filing date.
    pub filed: CalendarDay,
}

impl EvidenceSummary {
    /// Summarizes `evidence`.
    pub fn of(evidence: &Evidence) -> Self {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let sheet = evidence.sheet.as_ref();
        let notes = evidence.missing.iter().cloned().chain(evidence.warnings());
        Self {
            company: one_line(&evidence.company.name, MAX_NOTE_CHARS),
            fictional: evidence.company.fictional,
            provenance: evidence.provenance.clone(),
            as_of: sheet.map(|sheet| sheet.as_of),
            newest_filing: evidence.newest_filing().map(|newest| NewestFiling {
                form: one_line(&newest.form, MAX_NOTE_CHARS),
                filed: newest.filed,
            }),
            facts: count(sheet.map_or(0, |sheet| sheet.facts.len())),
            events: count(evidence.events.len()),
            passages: count(evidence.passages.len()),
            documents: count(evidence.documents.len()),
            headlines: count(evidence.headlines.len()),
            sources: count(evidence.sources.len()),
            notes: notes.take(MAX_NOTES).map(|note| one_line(&note, MAX_NOTE_CHARS)).collect(),
        }
    }
}
