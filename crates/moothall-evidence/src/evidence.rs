//! What is known about a company, with the filing behind every number.
//!
//! Numbers come from what the company filed, never from a model. A [`Sheet`] (F0) holds them under
//! ids formed from a metric and a fiscal period, so that a sentence can name the fact it stands on.

pub mod arithmetic;
mod book;
pub mod bundle;
mod checks;
pub mod cik;
pub mod companyfacts;
mod coverage;
mod data_check;
pub mod day;
mod derive;
pub mod documents;
mod error;
pub mod events;
pub mod fact;
mod fiscal;
mod item_code;
pub mod metrics;
pub mod news;
mod order;
pub mod passages;
pub mod period;
mod pick;
mod quarters;
mod rows;
pub mod sheet;
mod splits;
pub mod submissions;
mod table;
mod text;
pub mod tickers;
mod words;
mod written;

#[cfg(test)]
#[path = "evidence/test_data_tests.rs"]
pub(crate) mod test_data;

pub use self::bundle::{Company, Evidence, Provenance, SourceFile};
pub use self::cik::Cik;
pub use self::companyfacts::CompanyFacts;
pub use self::coverage::Coverage;
pub use self::data_check::{DataCheck, Gap, GapReason, Identity};
pub use self::day::Day;
pub use self::documents::{DocumentKind, UserDocument, UserPassage};
pub use self::error::EvidenceError;
pub use self::events::FilingEvent;
pub use self::fact::{Fact, FactId, Filed, Restated, Source, SplitAdjustment, Unit};
pub use self::item_code::ItemCode;
pub use self::news::Headline;
pub use self::passages::Passage;
pub use self::period::Period;
pub use self::rows::FactRow;
pub use self::sheet::Sheet;
pub use self::submissions::{Accession, Filing, Submissions};
pub use self::table::fixed;
pub use self::tickers::{InvalidTicker, Listing, Ticker, TickerRefusal, TickerTable};
