//! Evidence about a company, with the filing behind every number.
//!
//! Numbers come from the company's filings, never from a model. A [`FactSheet`] (F0) keys them by
//! metric and fiscal period, so a sentence can cite the fact it relies on.

pub mod arithmetic;
pub mod bundle;
pub mod cik;
pub mod companyfacts;
mod consistency;
mod coverage;
mod data_check;
pub mod day;
mod derive;
mod display;
pub mod documents;
mod error;
pub mod events;
pub mod fact;
mod fact_rows;
mod fact_selection;
mod fact_table;
mod fiscal_years;
mod item_code;
mod metric_order;
pub mod metrics;
pub mod news;
pub mod passages;
pub mod period;
mod quarters;
mod sanitize;
pub mod sheet;
mod sheet_format;
mod splits;
pub mod submissions;
mod table;
pub mod tickers;

#[cfg(test)]
#[path = "evidence/test_data_tests.rs"]
pub(crate) mod test_data;

pub use self::bundle::{CompanyProfile, Evidence, Provenance, SourceFile};
pub use self::cik::Cik;
pub use self::companyfacts::CompanyFacts;
pub use self::coverage::MetricCoverage;
pub use self::data_check::{AccountingIdentity, DataCheck, DataGap, GapReason};
pub use self::day::CalendarDay;
pub use self::display::{AmountScale, display_amount};
pub use self::documents::{DocumentKind, UserDocument, UserPassage};
pub use self::error::EvidenceError;
pub use self::events::FilingEvent;
pub use self::fact::{
    Fact, FactId, FactSource, FactUnit, FilingSource, OriginalValue, SplitAdjustment,
};
pub use self::fact_rows::FactRow;
pub use self::item_code::ItemCode;
pub use self::news::NewsHeadline;
pub use self::passages::FilingPassage;
pub use self::period::FiscalPeriod;
pub use self::sheet::FactSheet;
pub use self::submissions::{AccessionNumber, FilerSubmissions, Filing};
pub use self::table::fixed;
pub use self::tickers::{InvalidTicker, Ticker, TickerListing, TickerLookupError, TickerTable};
