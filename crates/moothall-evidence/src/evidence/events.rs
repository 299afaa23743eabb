//! E0: events that a company reported between its periodic reports.
//!
//! An 8-K lists its subjects as item codes. The codes are official, dated and free, and serve as
//! the main record of events. A foreign filer's 6-K has no codes; only its filing is known.

use serde::{Deserialize, Serialize};

use super::day::CalendarDay;
use super::item_code::ItemCode;
use super::submissions::Filing;

/// Limit on events; the newest are used.
pub const MAX_EVENTS: usize = 40;

/// An event that the company reported between its periodic reports; its citation is
/// `[E0:<accession>]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilingEvent {
    /// The accession number of the filing.
    pub accession: String,
    /// The form: 8-K, 6-K or an amendment of one.
    pub form: String,
    /// The filing date.
    pub filed: CalendarDay,
    /// The date of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_date: Option<CalendarDay>,
    /// Its item codes; a 6-K has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemCode>,
}

impl FilingEvent {
    /// The event of a filing, or `None` if the form is not an event report.
    pub fn of(filing: &Filing) -> Option<Self> {
        let is_event = filing.form.starts_with("8-K") || filing.form.starts_with("6-K");
        is_event.then(|| Self {
            accession: filing.accession.to_string(),
            form: filing.form.clone(),
            filed: filing.filed,
            report_date: filing.report_date,
            items: filing.items.clone(),
        })
    }

    /// Whether it announces the results of a period.
    pub fn is_results(&self) -> bool {
        self.items.iter().any(ItemCode::is_results)
    }

    /// Describes the subjects in words.
    pub fn subjects(&self) -> String {
        let telling: Vec<&ItemCode> =
            self.items.iter().filter(|item| !item.is_attachment()).collect();
        let items = if telling.is_empty() { self.items.iter().collect() } else { telling };
        if items.is_empty() {
            return "report without item codes".to_owned();
        }
        let words = items.into_iter().map(|item| match item.description() {
            Some(words) => format!("{words} ({item})"),
            None => format!("item {item}"),
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

/// The events among `filings`, which must be sorted newest first; at most [`MAX_EVENTS`].
pub fn events<'a>(filings: impl Iterator<Item = &'a Filing>) -> Vec<FilingEvent> {
    filings.filter_map(FilingEvent::of).take(MAX_EVENTS).collect()
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
