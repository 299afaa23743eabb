//! What an event says of the evidence; the evidence itself is the effect's answer.

use serde::{Deserialize, Serialize};

use crate::evidence::{Day, Evidence, Provenance};
use crate::text::one_line;

/// The most notes that travel with an event, and how much of each.
const MAX_NOTES: usize = 8;
const MAX_NOTE_CHARS: usize = 240;

/// Whom a consultation is about, and what there is to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Gathered {
    /// The company's name.
    pub company: String,
    /// Nobody trades it: it exists to show how this program works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fictional: bool,
    /// Where the evidence is from.
    pub provenance: Provenance,
    /// The day after which nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Day>,
    /// The newest report that a number is from: its form and the day it was filed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_filing: Option<NewestFiling>,
    /// Numbers.
    pub facts: u32,
    /// Filing events.
    pub events: u32,
    /// Passages of filings.
    pub passages: u32,
    /// The user's own documents.
    pub documents: u32,
    /// Headlines.
    pub headlines: u32,
    /// Files behind all of it.
    pub sources: u32,
    /// What should be here and is not, and what a reader should know about its age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A report that was filed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewestFiling {
    /// `10-K`.
    pub form: String,
    /// When.
    pub filed: Day,
}

impl Gathered {
    /// What is said of `evidence`.
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
